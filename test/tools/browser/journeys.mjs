// Plays citizens who pay at the same time on hosted pages and in a shop's frame. It prints
// one JSON object a line: {"row", "session", "seen", "faults"} for each citizen, with the
// content of every page. {"progress"} lines are for the reader of a log.
//
//   node journeys.mjs '{"api": …, "key": …, "control": …, "shop": …, "clock": […], "rows": […]}'
//
// api is the address of the sessions and key the integrator's key. control is the
// simulators' /control and shop the demo shop. A row is {name, scenario, url, id, ref,
// order, offer, answers, script, lang, at, clock}: scenario is the name of a scenario
// below, answers are what the citizen enters, script is true if the browser runs scripts.
// A row with frame, {notice, layout, ends}, is embedded: the notice that is
// paid, the layout of the frame, and the state in which the page around it must end. It
// learns url, id, ref and order itself.
//
// Rows whose clock is above 0 run last and together. At each mark they wait for one
// another; then the clock of the installation moves by the next step of the task's
// clock. A row begins when its clock - 1 marks have passed.
//
// A slow machine must not fail a row:
//   - Every wait is for something that the page or a system shows, and ends after
//     patience at the earliest.
//   - A payer decides by /control after the page was seen, not after seconds. Where the
//     seconds of a magic number count, "after" is the time that the page took.
//   - A 503 after the service's own time limit is an answer: the citizen tries again.
//   - Payers who approve 30 s after their window confirm when all others are at the mark.
import { launch, leaks, limited, moment, task, tell, watch } from './chromium.mjs';

const atOnce = 6;
const patience = 180_000;
const enough = 12; // failed journeys, after which no other begins
const anew = 700; // a citizen without scripts loads the page again after this time, ms
const serviceLimit = 2000; // how long the service tries before it answers with 503, ms
// The link that asks for the state of the payment again. Links to receipts name the language too.
const check = 'main a.button[href*="lang="]:not([href*="/receipt?"])';
const down = ['Service momentanément indisponible', 'Service unavailable for a moment'];

const browser = await launch();
let failed = 0;
const marks = task.clock.map(() => {
  const mark = {};
  mark.promise = new Promise((resolve, reject) => Object.assign(mark, { resolve, reject }));
  mark.promise.catch(() => {}); // rows that wait for it report its error
  return mark;
});
const clocked = task.rows.filter((row) => row.clock);
const reached = task.clock.map(() => new Set());
// The rows that confirm last at each mark. ready resolves when all other rows have arrived,
// over when these rows were checked after the mark.
const last = task.clock.map((_, n) => {
  const rows = new Set(clocked.filter((row) => row.scenario === 'late' && row.clock === n + 1).map((row) => row.name));
  const of = { rows, others: clocked.length - rows.size, left: new Set(rows) };
  of.ready = new Promise((resolve) => { of.resolveReady = resolve; });
  of.over = new Promise((resolve) => { of.resolveOver = resolve; });
  if (!of.others) of.resolveReady();
  if (!rows.size) of.resolveOver();
  return of;
});

// lookedAt notes that a row that confirmed last has been looked at, or has ended.
function lookedAt(row) {
  const of = last[row.clock - 1];
  if (of?.left.delete(row.name) && !of.left.size) of.resolveOver();
}

async function play(row, worker) {
  const c = row.frame ? new Framed(row) : new Citizen(row);
  try {
    if (failed >= enough) throw new Error(`not played, since ${enough} journeys have failed`);
    if (row.clock > 1) {
      await c.mark(-1);
      await last[row.clock - 2].over; // these rows have seconds; opening pages would slow them
    }
    await c.begin();
    await c.arrive(worker);
    await scenarios[row.scenario](c);
    await c.end();
  } catch (e) {
    c.faults.push(await c.explain(e));
  }
  if (c.faults.length) failed++;
  c.rest();
  if (row.clock) task.clock.forEach((_, n) => arrived(n, row));
  lookedAt(row);
  await c.leave();
  tell({ row: row.name, session: row.id, seen: c.seen, faults: c.faults });
}

// hands bounds how many citizens of rows with a clock act at once before their first mark.
// The SDK gives up after 20 s, and a machine that opens thirty pages at once is slower.
const hands = { free: atOnce, waiting: [] };

// windowOf returns a browser context of a worker, with a cache of its own. The rows of a
// worker share it and its tabs, because a new one costs more than a whole journey. Rows in
// frames have windows of their own: a hidden tab draws nothing, and a button in a frame
// that is not drawn cannot be pressed.
const windows = new Map();
function windowOf(worker, { script, frame }) {
  const name = `${worker} ${script} ${!!frame}`;
  if (!windows.has(name)) {
    windows.set(name, browser.newContext({ ignoreHTTPSErrors: true, javaScriptEnabled: script, locale: 'fr-CG', viewport: { width: 360, height: 740 } }).then((context) => {
      context.setDefaultTimeout(patience);
      return { context, free: [] };
    }));
  }
  return windows.get(name);
}

// arrived notes that a row has come to a mark; the last one moves the clock.
function arrived(n, row) {
  if (reached[n].size === clocked.length) return;
  reached[n].add(row.name);
  if ([...reached[n]].filter((name) => !last[n].rows.has(name)).length === last[n].others) last[n].resolveReady();
  if (reached[n].size === clocked.length) post(`${task.control}/clock`, { advance: task.clock[n] }).then(marks[n].resolve, marks[n].reject);
}

// Every scenario begins with an empty tab and ends with the last page that the citizen sees.
const scenarios = {
  // The citizen pays straight on.
  async pay({ tab, walk }) { await walk(tab); },

  // The payer approves after the waiting page was shown.
  async approved({ tab, walk, approve }) {
    await walk(tab, 'waiting');
    await approve(tab);
  },

  // The citizen presses nothing. Without a script the page loads itself again.
  async waits({ tab, walk, look, row, place }) {
    await walk(tab, 'waiting');
    await decide(row, 'approve');
    await place(tab).waitForSelector('main:not(:has(#live)) h1');
    await look(tab);
  },

  async doubleClick({ tab, walk, look, place, approve }) {
    await walk(tab, 'review');
    await place(tab).locator(forward).first().dblclick();
    await place(tab).waitForSelector('main:not(:has(form[action*="/pay"])) h1');
    await walk(tab, 'waiting');
    await approve(tab);
  },

  // The citizen confirms in both tabs.
  async twoTabs({ tab, newTab, walk, go, row, approve }) {
    const other = await newTab();
    await walk(tab, 'review');
    await walk(other, 'review', row.answers[1]);
    await Promise.all([go(tab, 'review'), go(other, 'review')]);
    await walk(tab, 'waiting');
    await approve(tab);
    await walk(other);
  },

  async reload({ tab, walk, look, again, approve }) {
    await walk(tab, 'review');
    await again(tab, () => tab.reload());
    await walk(tab, 'waiting');
    await again(tab, () => tab.reload());
    await walk(tab, 'waiting');
    await approve(tab);
    await again(tab, () => tab.reload());
    await look(tab);
  },

  async back({ tab, walk, goBack, look, approve }) {
    await walk(tab, 'waiting');
    await goBack(tab);
    await walk(tab, 'waiting');
    await approve(tab);
    await goBack(tab);
    await look(tab);
  },

  async cancel({ tab, walk, look, row, click }) {
    await walk(tab, row.at);
    await click(tab, 'form[action*="/cancel"] button');
    await look(tab); // the question
    await click(tab, 'form[method=post][action*="/cancel"] button');
    await look(tab);
  },

  // The integrator cancels while the citizen's form is on its way. The live page would
  // load itself again within 3 s; the form that was sent is not taken back.
  async cancelSlow({ tab, walk, look, row, click, faults }) {
    await walk(tab, row.at);
    const slow = `**/c/${row.id}/cancel*`;
    await tab.route(slow, async (route) => {
      await post(`${task.api}/${row.id}/cancel`, undefined, task.key).catch((e) => faults.push(e.message));
      await moment(3000);
      await route.continue();
    });
    await click(tab, 'form[action*="/cancel"] button');
    await tab.unroute(slow);
    await look(tab);
  },

  // A link of the waiting page is opened in another tab. The page continues to listen.
  async linkElsewhere({ tab, walk, faults, window, approve }) {
    await walk(tab, 'waiting');
    const stopped = (request) => faults.push(`${new URL(request.url()).pathname} is stopped`);
    tab.on('requestfailed', stopped);
    const [other] = await Promise.all([window.context.waitForEvent('page'), tab.locator('a[hreflang]').first().click({ modifiers: ['Control'] })]);
    await other.waitForSelector('#live');
    await other.close();
    tab.off('requestfailed', stopped);
    await approve(tab);
  },

  // The integrator cancels while the citizen is at a step, or pays.
  async cancelled({ tab, walk, look, row, go, changed }) {
    await walk(tab, row.at);
    await post(`${task.api}/${row.id}/cancel`, undefined, task.key);
    if (row.at === 'waiting') await changed(tab);
    else await go(tab, row.at);
    await look(tab);
  },

  // The session is cancelled during its payment, and then the operator decides. Before the
  // decision another session of the order cannot be collected. After an approval it can
  // never be collected.
  async cancelledThen(c) {
    await scenarios.cancelled(c);
    const { tab, newTab, walk, look, row, go, becomes } = c;
    const second = await post(task.api, { order_id: row.order, amount: 5000 }, task.key);
    const other = await newTab(second.checkout_url);
    await walk(other, 'review', row.answers[1]);
    await go(other, 'review');
    await look(other);
    await decide(row, row.decision);
    await becomes(tab);
    await look(tab);
    await walk(other);
  },

  // The agency changes the due while the citizen is at the review.
  async dueChanges({ tab, walk, look, go, row }) {
    await walk(tab, 'review');
    await post(`${task.control}/erp/impots`, { change: { [row.due]: row.change } });
    await go(tab, 'review');
    await look(tab);
  },

  async faulty({ tab, walk, look, go, row, approve }) {
    await walk(tab, 'phone', '-');
    for (const wrong of row.answers.slice(1)) {
      await go(tab, 'phone', wrong);
      await look(tab);
    }
    await go(tab, 'phone');
    await walk(tab, 'waiting');
    await approve(tab);
  },

  async languages({ tab, walk, look, click, approve }) {
    for (const at of ['phone', 'review', 'waiting', 'end']) {
      if (at === 'end') await approve(tab);
      else await walk(tab, at);
      await click(tab, 'a[hreflang]');
      await look(tab);
      if (at === 'phone') await click(tab, 'a[hreflang]');
    }
  },

  // In cash: a clerk looks the payment up and then takes the money.
  async counter({ tab, walk, look, row, becomes }) {
    await walk(tab, 'cash');
    const held = await post(`${task.control}/counter/${row.ref}`);
    await becomes(tab);
    await look(tab);
    await post(`${task.control}/collections/${held.id}/approve`);
    await becomes(tab);
    await look(tab);
  },

  // The clerk releases the payment, and the citizen pays by phone.
  async counterGivesUp({ tab, walk, look, row, becomes, click }) {
    await walk(tab, 'cash');
    const held = await post(`${task.control}/counter/${row.ref}`);
    await becomes(tab);
    await look(tab);
    await post(`${task.control}/collections/${held.id}/reject`);
    await becomes(tab);
    row.offer = 'momo';
    if ((await look(tab)).step === 'cash') await click(tab, 'main a.link');
    await walk(tab);
  },

  async overAtCounter({ tab, walk, mark, changed, look }) {
    await walk(tab, 'cash');
    await mark(task.clock.length - 1);
    await changed(tab);
    await look(tab);
  },

  // The clerk takes the cash long after the reservation has ended. By then a frame has
  // reported the end to the shop, and shows nothing new.
  async counterLate({ tab, walk, look, row, becomes, mark, reloaded }) {
    await walk(tab, 'cash');
    const held = await post(`${task.control}/counter/${row.ref}`);
    await becomes(tab);
    await look(tab);
    await mark(task.clock.length - 1);
    await ends(row, 'expired');
    // The reservation ends a moment before the session.
    if (row.frame) {
      await becomes(tab);
      await walk(tab);
      return post(`${task.control}/collections/${held.id}/approve`);
    }
    await reloaded(tab, ({ step }) => step === 'end');
    const { title } = await look(tab);
    await post(`${task.control}/collections/${held.id}/approve`);
    await reloaded(tab, (now) => now.title !== title);
    await look(tab);
  },

  async only({ tab, look }) { await look(tab); },

  // With the clock.
  async undecided({ tab, walk, mark, look, changed }) {
    await walk(tab, 'waiting');
    await mark(0);
    await changed(tab);
    await look(tab);
  },
  // The acquirer reports at the end of the window that the payment was abandoned.
  async abandoned(c) {
    await scenarios.undecided(c);
    if (!await c.place(c.tab).locator(check).count()) return;
    await c.becomes(c.tab);
    await c.look(c.tab);
  },
  // The payer approves 30 s after the end of the window. The clock moves by 6 s more than
  // the window, so that the rows of this scenario confirm when all others are at the mark.
  async late(c) {
    await c.walk(c.tab, 'review');
    c.rest();
    await last[c.row.clock - 1].ready;
    await scenarios.undecided(c);
    lookedAt(c.row);
    await c.mark(1);
    await c.becomes(c.tab);
    await c.look(c.tab);
  },
  async mismatched({ tab, walk, mark, look, changed, row }) {
    await walk(tab, 'waiting');
    await decide(row, 'approve', { amount: '1' });
    await mark(0);
    await changed(tab);
    await look(tab);
  },
  // The client secret of an open session is valid until expires_at, that of an ended one for
  // ten more minutes. Between the jump of the clock and the processor's end of the session,
  // the frame would show an unknown session.
  async expired({ tab, walk, mark, look, go, row }) {
    await walk(tab, row.at);
    await mark(task.clock.length - 1);
    await ends(row, 'expired');
    await go(tab, row.at);
    await look(tab);
  },
};

const forward = 'main form[method=post]:not([action*="/cancel"]) button';

// Citizen plays a row: its tabs, and what they showed.
class Citizen {
  constructor(row) {
    this.row = row;
    this.seen = [];
    this.faults = [];
    this.tabs = [];
    for (const name of ['newTab', 'walk', 'go', 'look', 'click', 'again', 'goBack', 'changed', 'becomes', 'reloaded', 'mark', 'place', 'approve']) this[name] = this[name].bind(this);
  }

  async arrive(worker) {
    this.window = await windowOf(worker, this.row);
    this.tab = await this.newTab();
  }

  // begin waits until this citizen may act; rest lets another citizen act.
  async begin() {
    if (!this.row.clock || this.acts) return;
    if (hands.free > 0) hands.free--;
    else await new Promise((resolve) => { hands.waiting.push(resolve); });
    this.acts = true;
  }

  rest() {
    if (!this.acts) return;
    this.acts = false;
    const next = hands.waiting.shift();
    if (next) next();
    else hands.free++;
  }

  async newTab(url = this.row.url) {
    this.awaited = 'the session’s page';
    const tab = await this.emptyTab();
    await tab.goto(`${url}?lang=${this.row.lang}`);
    return tab;
  }

  async emptyTab() {
    const tab = this.window.free.pop() || this.watched(await this.window.context.newPage());
    tab.citizen = this;
    this.tabs.push(tab);
    return tab;
  }

  watched(tab) {
    const origins = [task.api, task.control, task.shop].map((url) => new URL(url).origin);
    watch(tab, origins, (fault) => {
      if (!fault.includes('status of 503')) tab.citizen.faults.push(fault);
    });
    // A 503 is right only where the service has tried as long as it may.
    tab.on('response', (answer) => {
      const { startTime } = answer.request().timing();
      const took = Date.now() - startTime;
      if (answer.status() !== 503) return;
      const path = new URL(answer.url()).pathname;
      if (took < serviceLimit / 2) tab.citizen.faults.push(`${path} answers 503 after ${Math.round(took)} ms`);
      tell({ progress: `${tab.citizen.row.name}: ${path} answered 503 after ${Math.round(took)} ms` });
    });
    return tab;
  }

  // place is the page or frame in which a tab shows the checkout.
  place(tab) { return tab; }

  async end() {}

  // leave returns the tabs for other rows. It closes a tab that still shows a live page.
  async leave() {
    for (const tab of this.tabs) {
      if (tab.isClosed()) continue;
      // The page may change at this moment; its tab is then closed, too.
      const live = await this.place(tab).locator('#live').count().catch(() => 1);
      if (live) await tab.close();
      else this.window.free.push(tab);
    }
  }

  // walk goes on to a page, or to the end, and looks at each on the way.
  async walk(tab, to, answer = this.row.answers?.[0]) {
    for (let steps = 0; steps < 20; steps++) {
      const { step } = await this.look(tab);
      if (step === to && !(to === 'waiting' && this.bankAhead()) || step === 'end') return;
      await this.go(tab, step, answer);
    }
    throw new Error(`the page ${to ?? 'of the end'} was not reached in 20 steps`);
  }

  // approve makes the operator approve, and checks the page that follows.
  async approve(tab) {
    this.awaited = 'the operator’s approval';
    await decide(this.row, 'approve');
    await this.becomes(tab);
    await this.look(tab);
  }

  bankAhead() {
    return this.row.offer === 'card' && !this.seen.some((s) => s.step === 'bank');
  }

  // go goes forward from a page.
  async go(tab, step, answer = this.row.answers?.[0]) {
    this.awaited = `the page after ${step}`;
    if (step === (this.row.offer === 'card' ? 'bank' : 'review')) this.pressed = Date.now();
    switch (step) {
      case 'choose':
        return this.click(tab, `button[name=offer][value="${this.row.offer}"]`);
      case 'phone':
        await this.place(tab).locator('#phone').fill(answer);
        return this.click(tab, forward);
      case 'review':
        return this.click(tab, forward);
      case 'bank':
        if (!/^\d/.test(answer)) return this.click(tab, `button[value=${answer}]`);
        await tab.fill('#card', answer);
        return this.click(tab, 'button[value=pay]');
      case 'waiting':
        return this.bankAhead() ? this.toBank(tab, answer) : this.changed(tab);
      default:
        throw new Error(`the page ${step} has no link or form that continues`);
    }
  }

  // toBank follows the link to the bank, which only a script follows by itself.
  toBank(tab) {
    return this.click(tab, 'main a.button');
  }

  // click follows a link or sends a form, and waits for the answer. After a 503 it
  // clicks again if the page still has what to click.
  async click(tab, what) {
    do {
      await this.again(tab, () => this.place(tab).locator(what).first().click());
    } while (await this.recovered(tab) && await this.place(tab).locator(what).count());
  }

  // recovered leaves a page about an unavailable service by its link. It returns whether
  // there was such a page.
  async recovered(tab) {
    for (let was = false, end = Date.now() + patience; ; was = true) {
      const { title } = await this.read(tab);
      if (!down.includes(title)) return was;
      if (Date.now() > end) throw new Error('the service stays unavailable');
      await moment(anew);
      await this.again(tab, () => this.place(tab).locator('main a.button').first().click());
    }
  }

  again(tab, move) {
    return Promise.all([tab.waitForNavigation({ waitUntil: 'domcontentloaded' }), move()]);
  }

  // goBack presses « back », and « reload » where the browser asks for it because the
  // page before was the answer to a form.
  async goBack(tab) {
    try {
      await this.again(tab, () => tab.goBack());
    } catch (e) {
      if (!e.message.includes('ERR_CACHE_MISS')) throw e;
      await tab.waitForURL(/^chrome-error:/);
      await this.again(tab, () => tab.reload());
    }
  }

  // changed waits until the tab shows a page other than the waiting page. With a script the
  // page changes by itself, without one the citizen follows « Vérifier ».
  async changed(tab) {
    this.awaited = 'a page other than the waiting one';
    const other = async () => !(await this.read(tab)).live;
    do {
      if (!this.row.script) await this.until(tab, other);
      else await this.place(tab).waitForSelector('main:not(:has(#live)) h1');
      await this.recovered(tab);
    } while (!await other());
  }

  // becomes waits until a page that may not be live shows another one.
  async becomes(tab) {
    const { title } = this.seen.findLast((s) => s.tab === this.tabs.indexOf(tab));
    this.awaited = `a page other than « ${title} »`;
    const other = async () => (await this.read(tab)).title !== title;
    do {
      if (!this.row.script || !(await this.read(tab)).live) await this.until(tab, other);
      else await this.place(tab).waitForFunction((was) => document.querySelector('h1')?.textContent.replace(/\s+/gu, ' ').trim() !== was, title);
      await this.recovered(tab);
    } while (!await other());
  }

  async until(tab, done) {
    for (const end = Date.now() + patience; !await done();) {
      if (Date.now() > end) throw new Error(`not within ${patience / 1000} s`);
      await moment(anew);
      // Without a script the page reloads itself: it may have changed since done looked.
      if (!await this.place(tab).locator(check).count()) continue;
      await this.click(tab, check).catch(async (e) => {
        if (!await done()) throw e;
      });
    }
  }

  // reloaded loads a page again until it is the expected one.
  async reloaded(tab, meant) {
    this.awaited = 'another page, by loading again';
    for (const end = Date.now() + patience; ; await moment(anew)) {
      await this.again(tab, () => tab.reload());
      await this.recovered(tab);
      if (meant(await this.read(tab))) return;
      if (Date.now() > end) throw new Error(`not within ${patience / 1000} s`);
    }
  }

  // mark waits at a mark of the clock, counted from where the row begins.
  async mark(n) {
    this.awaited = `mark ${n} of the clock`;
    this.rest();
    for (let m = 0; m < n + this.row.clock; m++) {
      arrived(m, this.row);
      await marks[m].promise;
    }
  }

  // look records what a page shows, and how long ago the payer could decide.
  async look(tab) {
    await this.recovered(tab);
    const after = this.pressed ? Date.now() - this.pressed : 0;
    let page = await this.read(tab);
    // The browser moves the focus to the summary of errors when it draws the page, after it is loaded.
    for (const end = Date.now() + 5000; page.errors.length && !page.focus && Date.now() < end; await moment(30)) {
      page = await this.read(tab);
    }
    const shown = { tab: this.tabs.indexOf(tab), after, ...page };
    this.seen.push(shown);
    return shown;
  }

  // read reads a page. It reads again if the page is loading or changes by itself at that moment.
  async read(tab) {
    for (const end = Date.now() + patience; ; await moment(100)) {
      try {
        return await this.place(tab).evaluate(read);
      } catch (e) {
        if (Date.now() > end || tab.isClosed()) throw e;
      }
    }
  }

  // explain describes a failure: what was awaited, what the tabs show, and the error.
  async explain(e) {
    const pages = await Promise.all(this.tabs.filter((tab) => !tab.isClosed()).map((tab) => Promise.race([
      this.place(tab).evaluate(read).then(({ step, title }) => `${step} « ${title} »`).catch(() => 'a page that cannot be read'),
      moment(5000).then(() => 'a page that does not answer'),
    ])));
    const steps = this.seen.map((s) => s.step).join(', ') || 'no page';
    return `awaited ${this.awaited ?? 'a browser'}; the page is ${pages.join(', ') || 'not open'}; seen before: ${steps}; ${e.message.split('\n')[0].slice(0, 200)}`;
  }
}

// Framed plays a row in the frame of the shop's page, which logs every message.
class Framed extends Citizen {
  async newTab() {
    const tab = await this.emptyTab();
    const { lang, frame } = this.row;
    await tab.goto(`${task.shop}/lab?${new URLSearchParams({ lang, notice: frame.notice, layout: frame.layout })}`);
    const [answer] = await Promise.all([
      tab.waitForResponse((r) => r.request().method() === 'POST' && r.url().endsWith('/checkout')),
      tab.locator('#start').click(),
    ]);
    this.awaited = 'the checkout in the shop’s frame';
    this.both = (await answer.json()).client_secret.split(':');
    [this.row.id] = this.both;
    this.row.ref = (await sessionOf(this.row)).payment_ref;
    await tab.waitForSelector('#payment:not([data-state=opening], [data-state=slow])');
    const state = await tab.getAttribute('#payment', 'data-state');
    if (state === 'failed') throw new Error(`the SDK gave up: ${await tab.textContent('#status [data-say="failed"]')}`);
    await tab.frameLocator('#checkout iframe').locator('main h1').waitFor();
    return tab;
  }

  place(tab) {
    return tab.frames().find((f) => f.url().includes('/embed/')) || tab;
  }

  // again does an action whose answer replaces the content of the frame.
  async again(tab, move) {
    const place = this.place(tab);
    if (place === tab) return super.again(tab, move);
    await place.evaluate(() => { document.body.gone = false; });
    await move();
    for (const end = Date.now() + patience; await place.evaluate(() => document.body.gone === false); await moment(30)) {
      if (Date.now() > end) throw new Error(`the frame shows no other page within ${patience / 1000} s`);
    }
  }

  // toBank pays on the bank's page, which opens beside the shop's.
  async toBank(tab, answer) {
    const [bank] = await Promise.all([
      tab.waitForEvent('popup'), this.place(tab).locator('main a.button[target=_blank]').click(),
    ]);
    bank.citizen = this;
    this.tabs.push(this.watched(bank));
    await bank.waitForSelector('form[action*="/card/pay/"]');
    await this.look(bank);
    await this.go(bank, 'bank', answer);
    await bank.close();
  }

  // end checks the messages that the page around the frame received, and that they contain
  // no secret.
  async end() {
    const { tab, row } = this;
    this.awaited = `the shop’s page in state ${row.frame.ends}`;
    await tab.waitForSelector(`#payment[data-state="${row.frame.ends}"]`);
    this.faults.push(...await leaks(tab, this.both, [row.ref]));
    const said = await tab.evaluate(() => messages.map((m) => m.data.type).filter((t) => t !== 'resize'));
    const want = ['hello', 'ready', ...row.offer === 'card' ? ['pending'] : [], ...{ unlocked: ['complete'], over: ['ended'] }[row.frame.ends] || []];
    // The SDK loads a frame again that has said nothing for 8 s, which happens on a busy machine.
    const once = said.join().replace(/^(hello,ready,)+/, 'hello,ready,');
    if (once !== want.join()) this.faults.push(`the frame says ${said}, want ${want}`);
  }
}

// read runs in the page. It throws if the page is not all there yet: without a script a page that
// loads itself again has, for a moment, a heading and nothing below it.
function read() {
  if (document.readyState === 'loading') throw new Error('the page is loading');
  const clean = (e) => e ? e.textContent.replace(/\s+/gu, ' ').trim() : '';
  const all = (what) => [...document.querySelectorAll(what)];
  const one = (what) => document.querySelector(what);
  let step = 'end';
  if (one('form[action*="/card/pay/"]')) step = 'bank';
  else if (one('.reference')) step = 'cash';
  else if (one('button[name=offer]')) step = 'choose';
  else if (one('#phone')) step = 'phone';
  else if (one('form[action*="/pay"]')) step = 'review';
  else if (one('#live')) step = 'waiting';
  else if (one('form[method=post][action*="/cancel"]')) step = 'question';
  return {
    step, lang: document.documentElement.lang, title: clean(one('h1')), text: clean(one('main')),
    list: Object.fromEntries(all('dl > div').map((row) => [clean(row.querySelector('dt')), clean(row.querySelector('dd'))])),
    errors: all('#errors li').map(clean), focus: document.activeElement.id,
    offers: all('[name=offer][type=radio], button[name=offer]').map((e) => e.value),
    links: all('main a').map((a) => a.getAttribute('href')),
    forms: all('form').map((f) => f.getAttribute('action').replace(/\?.*/, '').replace(/.*\//, '')),
    test: !!one('.test'), live: !!one('#live'),
  };
}

// post sends a request. An integrator's is repeated with the same Idempotency-Key while
// the answer is 503, as the contract says.
async function post(url, body, key) {
  const headers = {
    'Content-Type': 'application/json',
    ...key && { Authorization: `Bearer ${key}`, 'Idempotency-Key': crypto.randomUUID() },
  };
  for (const end = Date.now() + patience; ; await moment(anew)) {
    const answer = await fetch(url, { method: 'POST', headers, body: body && JSON.stringify(body) });
    if (answer.ok) return answer.status === 204 ? {} : answer.json();
    const again = answer.status === 503 && !url.endsWith('/clock') && Date.now() < end;
    if (!again) throw new Error(`POST ${new URL(url).pathname}: ${answer.status} ${await answer.text()}`);
  }
}

// sessionOf is a row's session as its integrator reads it.
async function sessionOf(row) {
  for (const end = Date.now() + patience; ; await moment(anew)) {
    const answer = await fetch(`${task.api}/${row.id}`, { headers: { Authorization: `Bearer ${task.key}` } });
    if (answer.status !== 503 || Date.now() > end) return answer.json();
  }
}

// ends waits until a row's session has a status.
async function ends(row, status) {
  for (const end = Date.now() + patience; Date.now() < end; await moment(200)) {
    if ((await sessionOf(row)).status === status) return;
  }
  throw new Error(`the session is not ${status} within ${patience / 1000} s`);
}

// decide has the operator decide about a row's collection, once the operator knows it.
async function decide(row, word, body) {
  for (const end = Date.now() + patience; Date.now() < end; await moment(100)) {
    const all = await (await fetch(`${task.control}/collections?external_id=${row.ref}`)).json();
    if (all.length) return post(`${task.control}/collections/${all[0].id}/${word}`, body);
  }
  throw new Error(`the operator has no collection within ${patience / 1000} s`);
}

try {
  await limited(atOnce, task.rows.filter((row) => !row.clock), play);
  // A browser has six connections to a host, and each live page keeps one of them.
  await Promise.all(clocked.map((row, i) => play(row, row.frame ? i + atOnce : Math.floor(i / 4))));
} finally {
  await browser.close();
}
