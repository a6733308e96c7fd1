// Lets citizens pay on hosted pages, many at once, and prints for each of them
// what every page showed, a JSON object a line: {"row", "seen", "faults"}.
//
//   node hosted.mjs '{"api": …, "key": …, "control": …, "clock": […], "rows": […]}'
//
// api is the address of the sessions and key the integrator's, counter that of the
// agency's counters and clerk a clerk's; control is the simulators' /control. A row
// is {name, scenario, url, id, ref, order, offer, answers, script, lang, at, clock}:
// scenario names one of those below, answers are what the citizen enters, script
// says whether the browser runs scripts.
//
// Rows with clock, which is above 0, run last, all at once: at each mark of their
// way they wait for one another, and then everybody's clock moves by one of the
// task's clock. A row begins when all those before its clock have passed.
import { launch, limited, moment, task, tell, watch } from './hosted-browser.mjs';

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
  const c = new Citizen(row);
  try {
    if (row.clock > 1) await c.mark(-1);
    await c.arrive(worker);
    await scenarios[row.scenario](c);
  } catch (e) {
    c.faults.push(`${e.message.split('\n')[0]} (${c.where()})`);
  }
  if (row.clock) task.clock.forEach((_, n) => arrived(n, row));
  await c.leave();
  tell({ row: row.name, seen: c.seen, faults: c.faults });
}

// windowOf is a browser that remembers nothing of others, but style and script.
// It is shared by the rows of a worker, one after another, as are its tabs: a new
// one costs more than a whole journey.
const windows = new Map();
function windowOf(worker, script) {
  const name = `${worker} ${script}`;
  if (!windows.has(name)) {
    windows.set(name, browser.newContext({ javaScriptEnabled: script, locale: 'fr-CG', viewport: { width: 360, height: 740 } }).then((context) => {
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

  async doubleClick({ tab, walk, look }) {
    await walk(tab, 'review');
    await tab.locator(forward).first().dblclick();
    await tab.waitForSelector('main:not(:has(form[action*="/pay"])) h1');
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
    const held = await post(`${task.counter}/reservations`, { payment_ref: row.ref }, task.clerk);
    await becomes(tab);
    await look(tab);
    await post(`${task.counter}/payments`, { payment_ref: row.ref, collection_id: held.collection_id, total: held.total, receipt: row.name }, task.clerk);
    await becomes(tab);
    await look(tab);
  },

  // The clerk gives the payment up, and the citizen pays otherwise.
  async counterGivesUp({ tab, walk, look, row, becomes, click }) {
    await walk(tab, 'cash');
    const held = await post(`${task.counter}/reservations`, { payment_ref: row.ref }, task.clerk);
    await becomes(tab);
    await look(tab);
    await post(`${task.counter}/releases`, { payment_ref: row.ref, collection_id: held.collection_id }, task.clerk);
    await becomes(tab);
    row.offer = 'momo';
    if ((await look(tab)).step === 'cash') await click(tab, 'main a.link');
    await walk(tab);
  },

  async only({ tab, look }) { await look(tab); },

  // With the clock.
  async undecided({ tab, walk, mark, look, changed }) {
    await walk(tab, 'waiting');
    await mark(0);
    await changed(tab);
    await look(tab);
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
    for (const name of ['newTab', 'walk', 'go', 'look', 'click', 'again', 'goBack', 'changed', 'becomes', 'mark']) this[name] = this[name].bind(this);
  }

  async arrive(worker) {
    this.window = await windowOf(worker, this.row.script);
    this.tab = await this.newTab();
  }

  async newTab(url = this.row.url) {
    let tab = this.window.free.pop();
    if (!tab) {
      tab = await this.window.context.newPage();
      watch(tab, [new URL(url).origin, new URL(task.control).origin], (fault) => tab.citizen.faults.push(fault));
    }
    tab.citizen = this;
    this.tabs.push(tab);
    await tab.goto(`${url}?lang=${this.row.lang}`);
    return tab;
  }

  // leave gives the tabs back. One that still shows a live page is of no use.
  async leave() {
    for (const tab of this.tabs) {
      if (await tab.locator('#live').count()) await tab.close();
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
        await tab.fill('#phone', answer);
        return this.click(tab, forward);
      case 'review':
        return this.click(tab, forward);
      case 'bank':
        if (!/^\d/.test(answer)) return this.click(tab, `button[value=${answer}]`);
        await tab.fill('#card', answer);
        return this.click(tab, 'button[value=pay]');
      case 'waiting': // without a script nobody goes to the bank by himself
        if (this.bankAhead()) return this.click(tab, 'main a.button');
        return this.changed(tab);
      default:
        throw new Error(`nothing leads on from ${step}`);
    }
  }

  // click follows a link or sends a form, and waits for what comes.
  click(tab, what) {
    return this.again(tab, () => tab.locator(what).first().click());
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
    if (this.row.script) {
      await tab.waitForSelector('main:not(:has(#live)) h1');
      return tab.waitForLoadState('domcontentloaded');
    }
    return this.until(tab, () => tab.locator('#live').count().then((n) => n === 0));
  }

  // becomes waits until a page that may not be live shows another one.
  async becomes(tab) {
    const { title } = this.seen.findLast((s) => s.tab === this.tabs.indexOf(tab));
    const other = async () => (await tab.evaluate(read)).title !== title;
    if (!this.row.script || !await tab.locator('#live').count()) return this.until(tab, other);
    await tab.waitForFunction((was) => document.querySelector('h1')?.textContent.replace(/\s+/gu, ' ').trim() !== was, title);
    return tab.waitForLoadState('domcontentloaded');
  }

  async until(tab, done) {
    for (const end = Date.now() + patience; !await done();) {
      if (Date.now() > end) throw new Error('nothing changes');
      await moment(anew);
      await this.click(tab, 'main a.button[href*="lang="]');
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
        const shown = { tab: this.tabs.indexOf(tab), ...await tab.evaluate(read) };
        this.seen.push(shown);
        return shown;
      } catch (e) { // the page went on by itself at that moment
        if (tries === 3) throw e;
        await moment(100);
        await tab.waitForLoadState('domcontentloaded');
      }
    }
  }

  where() {
    return `after ${this.seen.map((s) => s.step).join(', ') || 'nothing'}`;
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
  await Promise.all(clocked.map((row, i) => play(row, Math.floor(i / 4))));
} finally {
  await browser.close();
}
