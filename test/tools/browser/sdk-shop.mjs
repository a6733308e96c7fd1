// Pays in the demo shop as a citizen does, with the real checkout in its frame, in the
// system's Chromium. It prints a JSON object a line: {"passed": name} or {"fault": text},
// and {"secrets": […]} with the secrets that the browser got.
//
//   node sdk-shop.mjs '{"shop": "https://…", "checkout": "http://…", "control": "http://…/control", "stranger": "https://…", "session": "chs_…:chs_secret_…", …}'
//
// Members: shop, checkout, control (of the simulators); stranger, an origin that may not
// embed the checkout; session, the client secret of a session of the shop's application;
// modules (the folder of playwright-core), chromium (its path).
import assert from 'node:assert/strict';
import { launch, leaks, runCases, task, tell } from './chromium.mjs';

const patience = 90_000;
const secrets = new Set();

const browser = await launch();

// open opens a page of the shop. It keeps the sessions that the browser gets in
// page.sessions.
async function open(path, { viewport = { width: 1280, height: 900 }, context } = {}) {
  context ||= await browser.newContext({ ignoreHTTPSErrors: true, viewport, locale: 'fr-CG' });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  page.sessions = [];
  page.faults = [];
  page.on('pageerror', (e) => page.faults.push(`script: ${e.message}`));
  page.on('console', (m) => page.faults.push(`console: ${m.text()}`));
  page.on('response', async (r) => {
    if (!r.url().endsWith('/checkout') || r.request().method() !== 'POST') return;
    const { client_secret: both } = await r.json().catch(() => ({}));
    if (!both) return;
    page.sessions.push(both);
    secrets.add(both.split(':')[1]);
  });
  await page.goto(task.shop + path);
  return page;
}

const frameOf = (page) => page.frameLocator('#checkout iframe');
const state = (page, s) => page.waitForSelector(`#payment[data-state="${s}"]`, { timeout: patience });

// begin starts the payment and waits for the checkout.
async function begin(page) {
  await page.click('#start:visible, #again:visible');
  await state(page, 'locked');
  await frameOf(page).locator('button[name=offer]').first().waitFor();
}

// choose goes to the review of a payment with a phone number.
async function choose(page, phone) {
  const frame = frameOf(page);
  await frame.locator('button[name=offer][value=momo]').click();
  await frame.locator('#phone').fill(phone);
  await frame.locator('form[action*="/phone"] button').click();
  await frame.locator('form[action*="/pay"] button').waitFor();
}

async function confirm(page) {
  await frameOf(page).locator('form[action*="/pay"] button').click();
}

async function pay(page, phone) {
  await begin(page);
  await choose(page, phone);
  await confirm(page);
}

// collection waits for the pending collection of a payer and returns its id.
async function collection(payer) {
  for (const until = Date.now() + patience; ; await new Promise((done) => setTimeout(done, 200))) {
    const all = await (await fetch(`${task.control}/collections?status=pending`)).json();
    const mine = all.filter((c) => c.payer.endsWith(payer));
    if (mine.length) return mine[0].id;
    if (Date.now() > until) throw new Error(`the operator has no pending collection of ${payer}`);
  }
}

async function approve(payer) {
  const answer = await fetch(`${task.control}/collections/${await collection(payer)}/approve`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' });
  assert.ok(answer.ok, await answer.text());
}

// unlocked waits until the browser and the shop's back end report the case as unlocked.
async function unlocked(page) {
  await state(page, 'unlocked');
  const id = await page.getAttribute('#payment', 'data-case');
  const other = await page.context().newPage();
  await other.goto(`${task.shop}/cases/${id}`);
  assert.equal(await other.locator('#unlocked').count(), 1, 'the back end has not unlocked the case');
  await other.close();
}

// discreet checks that the page around the checkout sees nothing that it must not know.
async function discreet(page, ...words) {
  assert.ok(page.sessions.length > 0, 'no session was seen');
  assert.deepEqual(await leaks(page, page.sessions.flatMap((s) => s.split(':')), words), []);
  assert.deepEqual(page.faults.filter((f) => !f.includes('An iframe which has both allow-scripts and allow-same-origin')), []);
}

const spoken = (page) => page.evaluate(() => messages.map((m) => m.data.type).filter((t) => t !== 'resize'));

const cases = {
  async 'pays, and the back end unlocks the case'() {
    const page = await open('/lab?layout=large');
    const depth = await page.evaluate(() => history.length);
    await pay(page, '06 600 00 01');
    await unlocked(page);
    assert.deepEqual(await spoken(page), ['hello', 'ready', 'complete']);
    assert.equal(await page.evaluate(() => history.length), depth);
    await discreet(page);
    const frame = page.frames().find((f) => f.url().startsWith(task.checkout));
    assert.ok(!frame.url().includes('chs_secret_'), frame.url());
    assert.deepEqual(await frame.evaluate(() => Object.keys(window).filter((k) => k === 'quittanceSecret')), []);
    const box = await page.locator('#checkout iframe').boundingBox();
    assert.deepEqual([box.width, box.height], [760, 560]);
  },

  async 'pays from the list of notices, in English, on a phone'() {
    const page = await open('/?lang=en', { viewport: { width: 360, height: 740 } });
    await page.click('button[value=patente]');
    await page.waitForSelector('#payment');
    await pay(page, '06 600 00 02');
    const frame = page.frames().find((f) => f.url().startsWith(task.checkout));
    assert.equal(await frame.evaluate(() => document.documentElement.lang), 'en');
    const box = await page.locator('#checkout iframe').boundingBox();
    assert.ok(box.width <= 360, JSON.stringify(box));
    await frame.locator('main[data-state=waiting]').waitFor();
    await frame.waitForFunction(() => document.documentElement.scrollHeight <= innerHeight + 1); // the frame does not scroll
    // The pressed button was far down; the next page must begin in view.
    const heading = await frame.locator('h1').boundingBox();
    assert.ok(heading.y >= 0 && heading.y + heading.height <= 740, `the heading is at ${JSON.stringify(heading)}`);
    await unlocked(page);
  },

  async 'shows that a card payment is under way'() {
    const page = await open('/lab?notice=visa'); // in euros, for which the card is the only offer
    await page.evaluate(() => document.addEventListener('quittance:checkout.pending', (e) => { window.pending = [e.target.id, e.detail]; }));
    await page.click('#start');
    await confirm(page);
    await state(page, 'pending');
    assert.deepEqual(await page.evaluate(() => pending), ['checkout', { reason: 'card' }]);
    const opened = page.waitForEvent('popup');
    await frameOf(page).locator('a.button[target=_blank]').click();
    const bank = await opened;
    await bank.locator('button[name=action][value=approve]').click();
    await unlocked(page);
    assert.deepEqual(await spoken(page), ['hello', 'ready', 'pending', 'complete']);
    await discreet(page);
  },

  async 'fits the frame to its content with the option resize'() {
    const page = await open('/lab?layout=compact&resize=auto&locale=fr');
    await begin(page);
    const fits = () => page.waitForFunction((origin) => {
      const told = messages.filter((m) => m.data.type === 'resize').pop();
      return told && Math.abs(document.querySelector('#checkout iframe').offsetHeight - told.data.data.height) <= 1 && origin;
    }, task.checkout);
    await fits();
    const frame = page.frames().find((f) => f.url().startsWith(task.checkout));
    assert.ok(await frame.evaluate(() => document.documentElement.scrollHeight <= innerHeight + 1), 'the frame scrolls');
    await discreet(page);
  },

  async 'a refusal ends the session, and the next try has a new one'() {
    const page = await open('/lab');
    await pay(page, '06 600 00 04');
    await state(page, 'over');
    assert.deepEqual(await spoken(page), ['hello', 'ready', 'ended']);
    await pay(page, '06 600 00 01');
    await unlocked(page);
    assert.equal(new Set(page.sessions).size, 2);
    await discreet(page, 'reject', 'fail');
  },

  async 'goes on after a reload of the frame'() {
    const page = await open('/lab');
    await pay(page, '06 677 00 51');
    await frameOf(page).locator('#live').waitFor();
    await page.frames().find((f) => f.url().startsWith(task.checkout)).evaluate(() => location.reload());
    await page.waitForFunction(() => messages.filter((m) => m.data.type === 'ready').length === 2);
    await frameOf(page).locator('#live').waitFor();
    await approve('77' + '0051');
    await unlocked(page);
    assert.deepEqual(await spoken(page), ['hello', 'ready', 'hello', 'hello', 'ready', 'complete']);
    await discreet(page);
  },

  async 'goes on after a reload of the page'() {
    const page = await open('/');
    await page.click('button[value=vignette]');
    await page.waitForSelector('#payment');
    await pay(page, '06 677 00 52');
    await frameOf(page).locator('#live').waitFor();
    await page.reload();
    await page.click('#start');
    await frameOf(page).locator('#live').waitFor();
    await approve('770052');
    await unlocked(page);
    assert.equal(new Set(page.sessions).size, 1, 'the same session');
  },

  async 'disables buttons until their scripts are loaded'() {
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    await context.route(/\/embed\.\w+\.js$/, async (route) => {
      await new Promise((done) => setTimeout(done, 2000));
      await route.continue();
    });
    const page = await open('/lab', { context });
    await page.click('#start');
    await frameOf(page).locator('button[name=offer][value=momo]').click();
    await frameOf(page).locator('#phone').waitFor();
    await discreet(page);
  },

  async 'unlocks once, in two tabs'() {
    const one = await open('/');
    await one.click('button[value=vignette]');
    await one.waitForSelector('#payment');
    const two = await open(new URL(one.url()).pathname, { context: one.context() });
    await begin(one);
    await begin(two);
    await choose(one, '06 600 00 02');
    await choose(two, '06 600 00 02');
    await confirm(one);
    await unlocked(one);
    await confirm(two);
    await unlocked(two);
    assert.equal(new Set([...one.sessions, ...two.sessions]).size, 1);
  },

  async 'shows nothing in a page that names a wrong origin'() {
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const [id, secret] = task.session.split(':');
    for (const parent of [task.shop, task.stranger, '']) {
      const page = await context.newPage();
      await page.goto(`${task.stranger}/lies`);
      await page.evaluate((src) => {
        window.messages = [];
        addEventListener('message', (e) => messages.push(e.data));
        const f = document.createElement('iframe');
        f.src = src;
        document.body.append(f);
        return new Promise((done) => { f.onload = done; });
      }, `${task.checkout}/embed/${id}?${new URLSearchParams({ client_secret: secret, parent_origin: parent })}`);
      await page.waitForTimeout(500);
      assert.equal(page.frames()[1].url(), 'chrome-error://chromewebdata/', `the frame is shown with the parent ${parent || 'missing'}`);
      assert.deepEqual(await page.evaluate(() => messages), []);
    }
    // It is not shown outside a frame either.
    const page = await context.newPage();
    const answer = await page.goto(`${task.checkout}/embed/${id}?${new URLSearchParams({ client_secret: secret, parent_origin: task.shop })}`);
    assert.equal(answer.status(), 403);
    await context.close();
  },

  async 'reports that the origin is rejected'() {
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await page.goto(`${task.stranger}/lies`);
    await page.addScriptTag({ url: `${task.checkout}/sdk/v1.js` });
    const written = [];
    page.on('console', (m) => written.push(m.text()));
    const begun = performance.now();
    const said = await page.evaluate((clientSecret) => new Promise((onError) => {
      Quittance.initEmbeddedCheckout({ clientSecret, onError }).then((c) => c.mount(document.body));
    }), task.session);
    const took = performance.now() - begun;
    assert.deepEqual([said.code, said.retryable, said.origin], ['origin_rejected', false, task.stranger]);
    assert.ok(took < 7000, `reported after ${took} ms`); // before the SDK calls the page slow, which it does after 8 s
    assert.equal(await page.locator('iframe').count(), 0); // no icon of a broken frame
    assert.ok(written.some((text) => text.includes(`${task.stranger} is not registered`)), written.join());
    await context.close();
  },

  async 'ignores messages of others'() {
    const page = await open('/lab');
    await begin(page);
    const popup = page.waitForEvent('popup');
    await page.evaluate((stranger) => void window.open(`${stranger}/lies`), task.stranger);
    const spoofer = await popup;
    await spoofer.waitForLoadState();
    await spoofer.evaluate(() => {
      const message = (type, data) => ({ ns: 'quittance.checkout', v: 1, cid: '0'.repeat(32), seq: 99, type, data });
      window.heard = [];
      addEventListener('message', (e) => heard.push(e.data));
      opener.postMessage(message('hello', { versions: [1] }), '*');
      opener.postMessage(message('hello', { versions: [1], need: 'navigate' }), '*');
      opener.postMessage(message('complete', { completion_token: 'cpt_spoofed' }), '*');
      const channel = new MessageChannel();
      channel.port1.onmessage = (e) => heard.push(e.data);
      opener.frames[0].postMessage(message('connect', {}), '*', [channel.port2]);
    });
    await page.waitForFunction(() => messages.some((m) => m.data.type === 'complete'));
    await choose(page, '06 600 00 01'); // a forged message, if accepted, would show now
    assert.deepEqual(await spoofer.evaluate(() => heard), []);
    assert.equal(await page.getAttribute('#payment', 'data-state'), 'locked');
    await spoofer.close();
    await confirm(page);
    await unlocked(page);
  },

  async 'unlocks for no token of another case'() {
    const paid = await open('/lab'), other = await open('/lab');
    await pay(paid, '06 600 00 01');
    await unlocked(paid);
    const token = await paid.evaluate(() => messages.find((m) => m.data.type === 'complete').data.data.completion_token);
    const ask = (t) => other.evaluate(async (completion_token) => {
      const answer = await fetch(`/cases/${document.querySelector('#payment').dataset.case}/completion`, {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ completion_token }),
      });
      return [answer.status, await answer.json()];
    }, t);
    assert.deepEqual(await ask(token), [200, { unlocked: false }]);
    assert.equal((await ask('cpt_guessed'))[0], 502);
    await other.reload();
    assert.equal(await other.locator('#unlocked').count(), 0);
  },

  async 'unlocks a case that is already paid'() {
    for (let attempt = 1; ; attempt++) {
      const page = await open('/');
      await page.click('button[value=vignette]');
      await page.waitForSelector('#payment');
      const id = await page.getAttribute('#payment', 'data-case');
      await begin(page);
      await choose(page, '06 600 00 01');
      // The citizen closes the browser before it sends the token.
      await page.route('**/completion', (route) => route.abort());
      await confirm(page);
      await frameOf(page).locator('.mark.ok').waitFor();
      await page.close({ runBeforeUnload: false });
      const again = await open(`/cases/${id}`, { context: page.context() });
      await again.waitForSelector('#start:visible, #unlocked');
      // A call that is under way when the page is closed may arrive after all.
      if (attempt < 3 && await again.locator('p#unlocked').count()) continue;
      await again.click('#start');
      return unlocked(again);
    }
  },
};

try {
  await runCases(2, cases);
} finally {
  tell({ secrets: [...secrets] });
  await browser.close();
}
