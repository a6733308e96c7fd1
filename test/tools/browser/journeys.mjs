// Lets citizens pay, many at once, on hosted pages and in a shop's frame, and prints
// for each of them what every page showed, a JSON object a line: {"row", "session",
// "seen", "faults"}.
//
//   node journeys.mjs '{"api": …, "key": …, "control": …, "shop": …, "clock": […], "rows": […]}'
//
// api is the address of the sessions and key the integrator's; control is the
// simulators' /control, shop the demo shop. A row is {name, scenario, url, id, ref,
// order, offer, answers, script, lang, at, clock}: scenario names one of those below,
// answers are what the citizen enters, script says whether the browser runs scripts.
// Embedded is a row with frame, {notice, layout, ends}: what is paid, where the
// frame's text goes, and how the page around it must end. It learns url, id, ref and
// order itself.
//
// Rows with clock, which is above 0, run last, all at once: at each mark of their
// way they wait for one another, and then everybody's clock moves by one of the
// task's clock. A row begins when all those before its clock have passed.
import { launch, leaks, limited, moment, task, tell, watch } from './chromium.mjs';

const atOnce = 6;
const patience = 60_000;
const anew = 700; // between two looks of a citizen without a script, ms

const browser = await launch();
const marks = task.clock.map(() => {
  const mark = {};
  mark.promise = new Promise((resolve, reject) => Object.assign(mark, { resolve, reject }));
  return mark;
});
const clocked = task.rows.filter((row) => row.clock);
const reached = task.clock.map(() => new Set());

async function play(row, worker) {
  const c = row.frame ? new Framed(row) : new Citizen(row);
  try {
    if (row.clock > 1) await c.mark(-1);
    await c.arrive(worker);
    await scenarios[row.scenario](c);
    await c.end();
  } catch (e) {
    c.faults.push(`${e.message.split('\n')[0]} (${c.where()})`);
  }
  if (row.clock) task.clock.forEach((_, n) => arrived(n, row));
  await c.leave();
  tell({ row: row.name, session: row.id, seen: c.seen, faults: c.faults });
}

// windowOf is a browser that remembers nothing of others, but style and script.
// It is shared by the rows of a worker, one after another, as are its tabs: a new
// one costs more than a whole journey. Frames have windows of their own: behind
// another tab nothing is drawn, and what is not drawn in a frame cannot be pressed.
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

// arrived says that a row has come to a mark; the last one moves the clock.
function arrived(n, row) {
  if (reached[n].size === clocked.length) return;
  reached[n].add(row.name);
  if (reached[n].size === clocked.length) post(`${task.control}/clock`, { advance: task.clock[n] }).then(marks[n].resolve, marks[n].reject);
}

// Every scenario begins with an empty tab and ends at what the citizen sees last.
const scenarios = {
  // Straight on.
  async pay({ tab, walk }) { await walk(tab); },

  async doubleClick({ tab, walk, look, place }) {
    await walk(tab, 'review');
    await place(tab).locator(forward).first().dblclick();
    await place(tab).waitForSelector('main:not(:has(form[action*="/pay"])) h1');
    await look(tab);
    await walk(tab);
  },

  // Both are asked to confirm, and both do.
  async twoTabs({ tab, newTab, walk, go, row }) {
    const other = await newTab();
    await walk(tab, 'review');
    await walk(other, 'review', row.answers[1]);
    await Promise.all([go(tab, 'review'), go(other, 'review')]);
    await walk(tab);
    await walk(other);
  },

  async reload({ tab, walk, look, again }) {
    await walk(tab, 'review');
    await again(tab, () => tab.reload());
    await walk(tab, 'waiting');
    await again(tab, () => tab.reload());
    await walk(tab);
    await again(tab, () => tab.reload());
    await look(tab);
  },

  async back({ tab, walk, goBack, look }) {
    await walk(tab, 'waiting');
    await goBack(tab);
    await walk(tab);
    await goBack(tab);
    await look(tab);
  },

  async cancel({ tab, walk, look, row, click }) {
    await walk(tab, row.at);
    await click(tab, 'form[action*="/cancel"] button');
    await look(tab);
  },

  // The integrator cancels, and the live page would be loaded again, while what the
  // citizen sent is on its way: that is not taken back.
  async cancelSlow({ tab, walk, look, row, click }) {
    await walk(tab, row.at);
    const slow = `**/c/${row.id}/cancel*`;
    await tab.route(slow, async (route) => {
      await post(`${task.api}/${row.id}/cancel`, undefined, task.key);
      await moment(3000);
      await route.continue();
    });
    await click(tab, 'form[action*="/cancel"] button');
    await tab.unroute(slow);
    await look(tab);
  },

  // A link of the page that waits is opened in a tab of its own: the page goes on
  // listening.
  async linkElsewhere({ tab, walk, look, row, becomes, faults, window }) {
    await walk(tab, 'waiting');
    const stopped = (request) => faults.push(`${new URL(request.url()).pathname} is stopped`);
    tab.on('requestfailed', stopped);
    const [other] = await Promise.all([window.context.waitForEvent('page'), tab.locator('a[hreflang]').first().click({ modifiers: ['Control'] })]);
    await other.waitForSelector('#live');
    await other.close();
    tab.off('requestfailed', stopped);
    await decide(row, 'approve');
    await becomes(tab);
    await look(tab);
  },

  // The integrator cancels while the citizen is at a step, or pays.
  async cancelled({ tab, walk, look, row, go, changed }) {
    await walk(tab, row.at);
    await post(`${task.api}/${row.id}/cancel`, undefined, task.key);
    if (row.at === 'waiting') await changed(tab);
    else await go(tab, row.at);
    await look(tab);
  },

  // Cancelled while it is paid, and then the operator decides. Meanwhile another
  // session of the order is not collected; after an approval it never is.
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

  async faulty({ tab, walk, look, go, row }) {
    await walk(tab, 'phone', '-');
    for (const wrong of row.answers.slice(1)) {
      await go(tab, 'phone', wrong);
      await look(tab);
    }
    await go(tab, 'phone');
    await walk(tab);
  },

  async languages({ tab, walk, look, click }) {
    for (const at of ['phone', 'review', 'waiting', undefined]) {
      await walk(tab, at);
      await click(tab, 'a[hreflang]');
      await look(tab);
      if (at === 'phone') await click(tab, 'a[hreflang]');
    }
  },

  // In cash: a clerk looks the payment up, and then takes the money.
  async counter({ tab, walk, look, row, becomes }) {
    await walk(tab, 'cash');
    const held = await post(`${task.control}/counter/${row.ref}`);
    await becomes(tab);
    await look(tab);
    await post(`${task.control}/collections/${held.id}/approve`);
    await becomes(tab);
    await look(tab);
  },

  // The clerk gives the payment up, and the citizen pays otherwise.
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

  // The clerk held the payment, and has the cash when its time is long over. A frame
  // has told the shop by then that it is over, and shows nothing new.
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
  // The acquirer says at the end of the window that nobody came.
  async abandoned(c) {
    await scenarios.undecided(c);
    if (!await c.place(c.tab).locator('main a.button[href*="lang="]').count()) return;
    await c.becomes(c.tab);
    await c.look(c.tab);
  },
  async late(c) {
    await scenarios.undecided(c);
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
  async expired({ tab, walk, mark, look, go, row }) {
    await walk(tab, row.at);
    await mark(task.clock.length - 1);
    await go(tab, row.at);
    await look(tab);
  },
};

const forward = 'main form[method=post]:not([action*="/cancel"]) button';

// Citizen is a row's: a browser of its own, and what it showed.
class Citizen {
  constructor(row) {
    this.row = row;
    this.seen = [];
    this.faults = [];
    this.tabs = [];
    for (const name of ['newTab', 'walk', 'go', 'look', 'click', 'again', 'goBack', 'changed', 'becomes', 'reloaded', 'mark', 'place']) this[name] = this[name].bind(this);
  }

  async arrive(worker) {
    this.window = await windowOf(worker, this.row);
    this.tab = await this.newTab();
  }

  async newTab(url = this.row.url) {
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
    watch(tab, origins, (fault) => tab.citizen.faults.push(fault));
    return tab;
  }

  // place is where a tab shows the checkout.
  place(tab) { return tab; }

  async end() {}

  // leave gives the tabs back. One that still shows a live page is of no use.
  async leave() {
    for (const tab of this.tabs) {
      if (tab.isClosed()) continue;
      if (await this.place(tab).locator('#live').count()) await tab.close();
      else this.window.free.push(tab);
    }
  }

  // walk goes on to a page, or to the end, and looks at each on the way.
  async walk(tab, to, answer = this.row.answers?.[0]) {
    for (let steps = 0; steps < 8; steps++) {
      const { step } = await this.look(tab);
      if (step === to && !(to === 'waiting' && this.bankAhead()) || step === 'end') return;
      await this.go(tab, step, answer);
    }
    throw new Error(`goes round in circles, wanted ${to ?? 'the end'}`);
  }

  bankAhead() {
    return this.row.offer === 'card' && !this.seen.some((s) => s.step === 'bank');
  }

  // go goes forward from a page.
  async go(tab, step, answer = this.row.answers?.[0]) {
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
        throw new Error(`nothing leads on from ${step}`);
    }
  }

  // toBank: without a script nobody goes there by himself.
  toBank(tab) {
    return this.click(tab, 'main a.button');
  }

  // click follows a link or sends a form, and waits for what comes.
  click(tab, what) {
    return this.again(tab, () => this.place(tab).locator(what).first().click());
  }

  again(tab, move) {
    return Promise.all([tab.waitForNavigation({ waitUntil: 'domcontentloaded' }), move()]);
  }

  // goBack presses « back », and « reload » where the browser asks for that: the
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

  // changed waits until the page shows something else than that it waits: by
  // itself, or by « Vérifier ».
  async changed(tab) {
    const place = this.place(tab);
    if (this.row.script) {
      await place.waitForSelector('main:not(:has(#live)) h1');
      return place.waitForLoadState('domcontentloaded');
    }
    return this.until(tab, () => place.locator('#live').count().then((n) => n === 0));
  }

  // becomes waits until a page that may not be live shows another one.
  async becomes(tab) {
    const { title } = this.seen.findLast((s) => s.tab === this.tabs.indexOf(tab));
    const place = this.place(tab);
    const other = async () => (await place.evaluate(read)).title !== title;
    if (!this.row.script || !await place.locator('#live').count()) return this.until(tab, other);
    await place.waitForFunction((was) => document.querySelector('h1')?.textContent.replace(/\s+/gu, ' ').trim() !== was, title);
    return place.waitForLoadState('domcontentloaded');
  }

  async until(tab, done) {
    for (const end = Date.now() + patience; !await done();) {
      if (Date.now() > end) throw new Error('nothing changes');
      await moment(anew);
      await this.click(tab, 'main a.button[href*="lang="]');
    }
  }

  // reloaded loads a page again until it is the one that is meant.
  async reloaded(tab, meant) {
    for (const end = Date.now() + patience; ; await moment(anew)) {
      await this.again(tab, () => tab.reload());
      if (meant(await tab.evaluate(read))) return;
      if (Date.now() > end) throw new Error('nothing changes');
    }
  }

  // mark waits at a mark of the clock, counted from where the row begins.
  async mark(n) {
    for (let m = 0; m < n + this.row.clock; m++) {
      arrived(m, this.row);
      await marks[m].promise;
    }
  }

  // look notes what a page shows.
  async look(tab) {
    for (let tries = 0; ; tries++) {
      try {
        const shown = { tab: this.tabs.indexOf(tab), ...await this.place(tab).evaluate(read) };
        this.seen.push(shown);
        return shown;
      } catch (e) { // the page went on by itself at that moment
        if (tries === 3) throw e;
        await moment(100);
        await this.place(tab).waitForLoadState('domcontentloaded');
      }
    }
  }

  where() {
    return `after ${this.seen.map((s) => s.step).join(', ') || 'nothing'}`;
  }
}

// Framed is a citizen in the frame of the shop's page, which logs every message.
class Framed extends Citizen {
  async newTab() {
    const tab = await this.emptyTab();
    const { lang, frame } = this.row;
    await tab.goto(`${task.shop}/lab?${new URLSearchParams({ lang, notice: frame.notice, layout: frame.layout })}`);
    const [answer] = await Promise.all([
      tab.waitForResponse((r) => r.request().method() === 'POST' && r.url().endsWith('/checkout')),
      tab.locator('#start').click(),
    ]);
    this.both = (await answer.json()).client_secret.split(':');
    [this.row.id] = this.both;
    this.row.ref = (await sessionOf(this.row)).payment_ref;
    await tab.waitForSelector('#payment:not([data-state=opening], [data-state=slow])');
    await tab.frameLocator('#checkout iframe').locator('main h1').waitFor();
    return tab;
  }

  place(tab) {
    return tab.frames().find((f) => f.url().includes('/embed/')) || tab;
  }

  // again: the answer takes the place of what the frame shows.
  async again(tab, move) {
    const place = this.place(tab);
    if (place === tab) return super.again(tab, move);
    await place.evaluate(() => { document.body.gone = false; });
    await move();
    for (const end = Date.now() + patience; await place.evaluate(() => document.body.gone === false); await moment(30)) {
      if (Date.now() > end) throw new Error('the frame brings no other page');
    }
  }

  // toBank: its page opens beside the shop's.
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

  // end: the page around the frame knows what it must and nothing else.
  async end() {
    const { tab, row } = this;
    await tab.waitForSelector(`#payment[data-state="${row.frame.ends}"]`);
    this.faults.push(...await leaks(tab, this.both, [row.ref]));
    const said = await tab.evaluate(() => messages.map((m) => m.data.type).filter((t) => t !== 'resize'));
    const want = ['hello', 'ready', ...row.offer === 'card' ? ['pending'] : [], ...{ unlocked: ['complete'], over: ['ended'] }[row.frame.ends] || []];
    if (said.join() !== want.join()) this.faults.push(`the frame says ${said}, want ${want}`);
  }
}

// read runs in the page.
function read() {
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
  return {
    step, lang: document.documentElement.lang, title: clean(one('h1')), text: clean(one('main')),
    list: Object.fromEntries(all('dl > div').map((row) => [clean(row.querySelector('dt')), clean(row.querySelector('dd'))])),
    errors: all('#errors li').map(clean), focus: document.activeElement.id,
    offers: all('[name=offer][type=radio], button[name=offer]').map((e) => e.value),
    links: all('main a').map((a) => a.getAttribute('href')),
    forms: all('form').map((f) => f.getAttribute('action').replace(/\?.*/, '').replace(/.*\//, '')),
    test: !!one('.test'),
  };
}

async function post(url, body, key) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...key && { Authorization: `Bearer ${key}`, 'Idempotency-Key': crypto.randomUUID() },
    },
    body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`POST ${new URL(url).pathname}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? {} : answer.json();
}

// sessionOf is a row's session as its integrator reads it.
async function sessionOf(row) {
  return (await fetch(`${task.api}/${row.id}`, { headers: { Authorization: `Bearer ${task.key}` } })).json();
}

// ends waits until a row's session has that status.
async function ends(row, status) {
  for (const end = Date.now() + patience; Date.now() < end; await moment(200)) {
    if ((await sessionOf(row)).status === status) return;
  }
  throw new Error(`the session is not ${status}`);
}

// decide is the word of the operator about a row's collection.
async function decide(row, word, body) {
  for (const end = Date.now() + patience; Date.now() < end; await moment(100)) {
    const all = await (await fetch(`${task.control}/collections?external_id=${row.ref}`)).json();
    if (all.length) return post(`${task.control}/collections/${all[0].id}/${word}`, body);
  }
  throw new Error('the operator is not asked');
}

try {
  await limited(atOnce, task.rows.filter((row) => !row.clock), play);
  // A browser asks a host six things at once, and a live page keeps one of them.
  await Promise.all(clocked.map((row, i) => play(row, row.frame ? i + atOnce : Math.floor(i / 4))));
} finally {
  await browser.close();
}
