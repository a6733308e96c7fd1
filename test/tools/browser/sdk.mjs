// Tests the browser SDK and the frame script on pages of the test's server, in the system's
// Chromium. It prints a JSON object a line: {"passed": name} or {"fault": text}.
//
//   node sdk.mjs '{"host": "https://…", "stranger": "https://…", "checkout": "http://…", "dead": "http://…", …}'
//
// Members: host, an origin that may embed the checkout; stranger, an origin that may not;
// checkout, the checkout's origin; dead, an origin at which nothing listens; modules (the
// folder of playwright-core), chromium (its path).
import assert from 'node:assert/strict';
import { launch, runCases, task } from './chromium.mjs';

const session = 'chs_06f2sessionid';
const secret = 'chs_secret_Very-Secret_0';
const both = `${session}:${secret}`;
const patience = 40_000;

const browser = await launch();

// open opens a page that logs every message, also those of the SDK's ports. In the page,
// window.start(options, target) mounts a checkout and logs its callbacks into window.calls.
// The page's time stands still except during page.clock.runFor.
async function open(url = task.host, viewport = { width: 1280, height: 900 }) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport });
  context.setDefaultTimeout(patience);
  await context.addInitScript(() => {
    if (window !== top) return;
    window.messages = [];
    window.calls = [];
    window.acks = { drop: 0, sent: 0 };
    window.loads = 0; // loads of frames with a page of another origin, also error pages
    document.addEventListener('load', (e) => {
      try { e.target.contentWindow?.location.href; } catch { loads++; }
    }, true);
    addEventListener('message', (e) => messages.push({ on: 'window', origin: e.origin, data: e.data }));
    const Channel = MessageChannel;
    window.MessageChannel = function () {
      const channel = new Channel();
      channel.port1.addEventListener('message', (e) => e.data && messages.push({ on: 'port', data: e.data }));
      return channel;
    };
    const post = MessagePort.prototype.postMessage;
    MessagePort.prototype.postMessage = function (message, ...rest) {
      if (message?.type === 'ack' && ++acks.sent <= acks.drop) return undefined;
      return post.call(this, message, ...rest);
    };
    window.start = async (options, target = '#pay') => {
      const names = ['Ready', 'Complete', 'Pending', 'SessionEnd', 'Error', 'Close', 'Slow'];
      const log = Object.fromEntries(names.map((n) => [`on${n}`, (said) => calls.push([options.name || '', n, said])]));
      const checkout = await Quittance.initEmbeddedCheckout({ ...log, ...options });
      checkout.mount(target);
      return (window.checkout = checkout);
    };
  });
  await context.clock.install({ time: 0 });
  await context.clock.pauseAt(1000);
  const page = await context.newPage();
  page.consoles = [];
  page.on('console', (m) => page.consoles.push(m.text()));
  page.on('pageerror', (e) => page.consoles.push(`uncaught: ${e.message}`));
  await page.goto(url);
  return page;
}

// until waits until a condition is true in the page. It asks from outside, because
// Playwright's own wait counts drawn frames and a hidden page draws none.
async function until(page, what, argument) {
  for (const end = Date.now() + patience; !(await page.evaluate(what, argument));) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const start = (page, options = {}, target) =>
  page.evaluate(async ([o, t]) => void (await start(o, t)), [{ clientSecret: both, ...options }, target]);
// Returns the logged callbacks as JSON, without undefined members.
const calls = async (page, name) => JSON.parse(await page.evaluate((n) => JSON.stringify(calls.filter((c) => !n || c[1] === n)), name));
const called = (page, name, n = 1) => until(page, ([w, k]) => calls.filter((c) => c[1] === w).length >= k, [name, n]);
const embedded = (page) => page.frames().find((f) => f.url().startsWith(`${task.checkout}/embed/`));
const say = (frame, type, data) => frame.evaluate(([t, d]) => say(t, d), [type, data]);
const ported = (page, type) => page.evaluate((t) => messages.filter((m) => m.on === 'port' && (!t || m.data.type === t)), type);
const loaded = (page, n) => until(page, (k) => loads >= k, n);
// probe advances the time until the SDK asks whether the service answers.
const probe = async (page) => {
  const asked = page.waitForEvent('response', (r) => r.url().endsWith('/sdk/integrity.json'));
  await page.clock.runFor(8000);
  await asked;
};
const refused = async (page, run, what) => {
  const text = await page.evaluate(run).then(() => 'nothing is thrown', (e) => e.message);
  assert.match(text, what);
  assert.ok(!text.includes('Very-Secret') && !text.includes('sk_test_Key'), `a secret in ${text}`);
};

// ready opens a page with a checkout that is ready.
async function ready(options, viewport) {
  const page = await open(task.host, viewport);
  await start(page, options);
  await called(page, 'Ready');
  return page;
}

const cases = {
  async 'shows the frame, and keeps the secret out of the page'() {
    const page = await open();
    const depth = await page.evaluate(() => history.length);
    await start(page);
    await called(page, 'Ready');
    assert.deepEqual(await calls(page), [['', 'Ready', { layout: 'large' }]]);
    const frame = page.locator('#pay iframe');
    assert.equal(await frame.getAttribute('src'), null);
    assert.equal(await frame.getAttribute('sandbox'), 'allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation');
    assert.equal(await frame.getAttribute('title'), 'Paiement'); // the page is in French
    const box = await frame.boundingBox();
    assert.deepEqual([box.width, box.height], [760, 560]);

    const asked = new URL(await embedded(page).evaluate(() => window.asked));
    assert.deepEqual(Object.fromEntries(asked.searchParams), { client_secret: secret, parent_origin: task.host, layout: 'large', locale: 'fr' });
    assert.equal(asked.pathname, `/embed/${session}`);
    assert.ok(!embedded(page).url().includes('secret'), embedded(page).url());
    const held = await embedded(page).evaluate(() => ({
      value: window.quittanceSecret, listed: Object.keys(window).includes('quittanceSecret'), address: location.href, referrer: document.referrer,
    }));
    assert.equal(held.value, secret);
    assert.equal(held.listed, false);
    assert.ok(!held.address.includes('secret'), held.address);

    const known = await page.evaluate(() => JSON.stringify([
      document.documentElement.outerHTML, location.href, history.state, document.cookie, { ...localStorage }, { ...sessionStorage },
      performance.getEntries().map((e) => e.toJSON()), messages, Object.keys(window).map((k) => { try { return JSON.stringify(window[k]) } catch { return k } }),
      Object.values(checkout).map(String),
    ]));
    assert.ok(!known.includes(secret), `the page knows the secret: …${known.slice(known.indexOf(secret) - 300, known.indexOf(secret) + 100)}`);
    assert.ok(!known.includes(session), `the page knows the session id: …${known.slice(known.indexOf(session) - 300, known.indexOf(session) + 100)}`);
    assert.equal(await page.evaluate(() => history.length), depth);
    // Chromium warns about every frame with these two permissions. The checkout needs both,
    // and it cannot leave its sandbox because it has another origin.
    assert.deepEqual(page.consoles.filter((m) => !m.startsWith('An iframe which has both allow-scripts and allow-same-origin')), []);
  },

  async 'chooses the layout by the window, unless an option sets it'() {
    const small = await ready({}, { width: 360, height: 700 });
    assert.deepEqual(await calls(small), [['', 'Ready', { layout: 'compact' }]]);
    const box = await small.locator('#pay iframe').boundingBox();
    assert.ok(box.width <= 360 && box.height === 620, JSON.stringify(box));
    const told = await ready({ layout: 'compact', locale: 'en' });
    assert.equal((await told.locator('#pay iframe').boundingBox()).width, 400);
    assert.equal(await told.locator('#pay iframe').getAttribute('title'), 'Payment');
    assert.match(await embedded(told).evaluate(() => window.asked), /layout=compact&locale=en$/);
  },

  async 'calls a function for the secret'() {
    const page = await open();
    await page.evaluate(async (s) => {
      const checkout = await Quittance.initEmbeddedCheckout({ fetchClientSecret: async () => s, onReady: () => calls.push(['', 'Ready']) });
      checkout.mount(document.querySelector('#pay'));
    }, both);
    await called(page, 'Ready');
  },

  async 'refuses wrong options with the mend in the text'() {
    const page = await open();
    await refused(page, () => start({ clientSecret: 'sk_test_Key0' }), /sk_ key.*back end/);
    await refused(page, () => start({ fetchClientSecret: () => 'chs_1:sk_live_Key0' }), /sk_ key/);
    for (const s of ['', 'chs_1', 'chs_secret_1', 'chs_1:secret', 'chs_1:chs_secret_Very-Secret x', undefined]) {
      assert.match(await page.evaluate((v) => start({ clientSecret: v }).then(() => 'nothing', (e) => e.message), s), /\{session_id\}:\{client_secret\}/);
    }
    await refused(page, () => Quittance.initEmbeddedCheckout(), /\{session_id\}/);
    await refused(page, () => start({ clientSecret: 'chs_1:chs_secret_1', layout: 'huge' }), /"compact" or "large"/);
    await refused(page, () => start({ clientSecret: 'chs_1:chs_secret_1' }, '#nowhere'), /no #nowhere on this page/);
    await refused(page, () => start({ clientSecret: 'chs_1:chs_secret_1' }, document.createElement('div')), /mount once it is there/);
    await refused(page, () => start({ fetchClientSecret: () => Promise.reject(new Error('the back end is away')) }), /the back end is away/);
    await start(page);
    await refused(page, () => checkout.mount('#other'), /mounted already: unmount/);
    await refused(page, () => start({ clientSecret: 'chs_1:chs_secret_1' }), /holds another checkout/);
    await refused(page, () => { checkout.destroy(); checkout.mount('#pay'); }, /destroyed: call initEmbeddedCheckout/);
    assert.equal(await page.locator('iframe').count(), 0);

    const plain = await open(task.checkout + '/plain');
    await refused(plain, () => start({ clientSecret: 'chs_1:chs_secret_1' }), /only https pages.*self-signed/);
    const module = await open(task.host + '/module');
    await refused(module, () => start({ clientSecret: 'chs_1:chs_secret_1' }), /checkoutOrigin/);
    await start(module, { checkoutOrigin: task.checkout });
    await called(module, 'Ready');
  },

  async 'passes on permitted messages and no others'() {
    const page = await ready({ resize: 'auto' });
    const frame = embedded(page);
    const more = { paid: true, status: 'completed', order_id: 'ORDER-1', amount: 5000, session_id: session, client_secret: secret };
    await page.evaluate(() => addEventListener('quittance:checkout.pending', (e) => calls.push(['', 'DOM', e.detail, e.target.id])));
    await say(frame, 'pending', { reason: 'card', ...more });
    await say(frame, 'closed', more);
    await say(frame, 'error', { code: 'unavailable', retryable: true, ref: '0a1b-77', ...more });
    for (const [type, data] of [
      ['paid', more], ['status', more], ['toString', more], ['hello', more], ['ack', more], ['resize', { height: 5000 }],
      ['pending', { reason: 'checkout.order_paid' }], ['pending', { reason: '5000' }], ['pending', { reason: ['card'] }],
      ['error', { code: 'paid' }], ['error', { code: { toString: 'x', ...more } }], ['error', { code: 'a', ref: session }],
      ['error', { code: 'a', ref: '1234567890123456' }], ['error', { code: 'a', ref: secret }], ['error', { code: 'a', retryable: 5000 }],
      ['complete', { completion_token: secret }], ['complete', { completion_token: `cpt_1 ${secret}` }],
    ]) await say(frame, type, data);
    await say(frame, 'complete', { completion_token: 'cpt_0123', ...more });
    await called(page, 'Complete');
    assert.deepEqual(await calls(page), [
      ['', 'Ready', { layout: 'large' }],
      ['', 'DOM', { reason: 'card' }, 'pay'],
      ['', 'Pending', { reason: 'card' }],
      ['', 'Close', null],
      ['', 'Error', { code: 'unavailable', retryable: true, ref: '0a1b-77' }],
      ['', 'Complete', { completion_token: 'cpt_0123' }],
    ]);

    const all = await page.evaluate(() => messages);
    const types = new Set(all.map((m) => m.data.type));
    assert.deepEqual(types, new Set(['hello', 'ready', 'resize', 'pending', 'closed', 'error', 'complete']));
    const fields = { versions: 1, height: 1, reason: 1, completion_token: 1, code: 1, retryable: 1, ref: 1, need: 1 };
    for (const m of all) {
      assert.equal(m.on, m.data.type === 'hello' ? 'window' : 'port');
      assert.deepEqual(Object.keys(m.data).sort(), ['cid', 'data', 'ns', 'seq', 'type', 'v']);
      assert.equal(m.data.ns, 'quittance.checkout');
      for (const field in m.data.data) assert.ok(fields[field], `${m.data.type} has ${field}`);
      if (m.on === 'port') assert.match(m.data.cid, /^[0-9a-f]{32}$/);
    }
    const text = JSON.stringify(all);
    for (const word of ['paid', 'status', 'order_id', 'amount', '5000', session, secret, 'chs_']) assert.ok(!text.includes(word), `${word} in ${text}`);
    assert.equal(new Set((await ported(page)).map((m) => m.data.cid)).size, 1);
  },

  async 'sends the same bytes for every kind of end, once'() {
    const page = await ready();
    for (const how of ['failed', 'expired', 'cancelled']) await say(embedded(page), 'ended', { status: how, reason: how });
    await say(embedded(page), 'closed');
    await called(page, 'Close');
    assert.equal((await calls(page, 'SessionEnd')).length, 1);
    const said = (await ported(page, 'ended')).map((m) => JSON.stringify({ ...m.data, seq: 0 }));
    assert.equal(said.length, 3);
    assert.equal(new Set(said).size, 1);
    assert.ok(!said[0].includes('"data"'), said[0]);
  },

  async 'repeats a completion until it is acknowledged, and delivers it once'() {
    const page = await ready();
    await page.evaluate(() => { acks.drop = 2; });
    await say(embedded(page), 'complete', { completion_token: 'cpt_once' });
    for (let n = 1; n <= 3; n++) {
      await until(page, (k) => acks.sent === k, n);
      await page.clock.runFor(1000);
    }
    await page.clock.runFor(5000);
    await say(embedded(page), 'closed');
    await called(page, 'Close');
    const sent = await ported(page, 'complete');
    assert.equal(sent.length, 3);
    assert.equal(new Set(sent.map((m) => m.data.seq)).size, 1);
    assert.equal(await page.evaluate(() => acks.sent), 3);
    await say(embedded(page), 'complete', { completion_token: 'cpt_twice' });
    await embedded(page).evaluate(() => location.reload());
    await until(page, () => messages.filter((m) => m.data.type === 'ready').length === 2);
    await say(embedded(page), 'complete', { completion_token: 'cpt_thrice' });
    await until(page, () => messages.some((m) => m.data.data?.completion_token === 'cpt_thrice'));
    assert.deepEqual(await calls(page, 'Complete'), [['', 'Complete', { completion_token: 'cpt_once' }]]);
  },

  async 'keeps messages that the page sent before the connection'() {
    const page = await ready({ clientSecret: `chs_early:${secret}` });
    await called(page, 'Pending');
    assert.deepEqual((await ported(page)).map((m) => [m.data.type, m.data.seq]), [['ready', 1], ['pending', 2]]);
  },

  async 'follows the height only with the option resize'() {
    const fixed = await ready();
    const auto = await ready({ resize: 'auto' });
    for (const page of [fixed, auto]) await embedded(page).evaluate(() => { document.body.style.height = '900px'; });
    await auto.waitForFunction(() => document.querySelector('#pay iframe').offsetHeight >= 900);
    await embedded(auto).evaluate(() => { document.body.style.height = '300px'; });
    await auto.waitForFunction(() => document.querySelector('#pay iframe').offsetHeight < 400);
    assert.deepEqual(await ported(fixed, 'resize'), []);
    assert.equal((await fixed.locator('#pay iframe').boundingBox()).height, 560);
  },

  async 'navigates a reloaded frame back, three times'() {
    const page = await ready();
    for (let n = 1; n <= 3; n++) {
      await embedded(page).evaluate(() => location.reload());
      await until(page, (k) => messages.filter((m) => m.data.type === 'ready').length === k + 1, n);
      assert.equal(await embedded(page).evaluate(() => window.quittanceSecret), secret);
    }
    assert.deepEqual(await calls(page), [['', 'Ready', { layout: 'large' }]]);
    await embedded(page).evaluate(() => location.reload());
    await called(page, 'Error');
    assert.deepEqual((await calls(page, 'Error'))[0][2], { code: 'reloaded', retryable: true });
    const cids = new Set((await ported(page)).map((m) => m.data.cid));
    assert.equal(cids.size, 4, 'each connection has its own cid');
  },

  async 'accepts messages of its own frame only'() {
    const page = await ready();
    await page.evaluate(([stranger, checkout]) => {
      // A frame of a stranger, and another frame of the checkout's origin.
      for (const src of [`${stranger}/spoof`, `${checkout}/spoof`]) {
        const f = document.createElement('iframe');
        f.src = src;
        document.body.append(f);
      }
      // The page itself sends valid messages from the wrong window.
      postMessage({ ns: 'quittance.checkout', v: 1, cid: '', seq: 0, type: 'hello', data: { versions: [1], need: 'navigate' } }, '*');
    }, [task.stranger, task.checkout]);
    const spoofed = (n) => until(page, (k) => messages.filter((m) => m.data.spoof).length === k, n);
    await spoofed(6); // a window that opens now would hide the page, and a hidden frame does not load
    const popup = page.waitForEvent('popup');
    await page.evaluate((stranger) => void open(`${stranger}/spoof`), task.stranger);
    await (await popup).waitForLoadState();
    await spoofed(9);
    await say(embedded(page), 'closed');
    await called(page, 'Close');
    const spoofs = page.frames().filter((f) => f.url().endsWith('/spoof'));
    for (const f of [...spoofs, await popup]) assert.deepEqual(await f.evaluate(() => heard), [], `${f.url()} heard something`);
    // It has accepted the messages of its own frame only.
    assert.deepEqual(await calls(page), [['', 'Ready', { layout: 'large' }], ['', 'Close', null]]);
    assert.equal((await ported(page)).length, 2);
  },

  async 'ignores a stranger in its frame'() {
    const page = await ready();
    await embedded(page).evaluate((to) => { location.href = to; }, `${task.stranger}/spoof`);
    await until(page, () => messages.filter((m) => m.data.spoof).length === 3);
    await page.waitForTimeout(500); // long enough for a navigation or an answer
    const taken = page.frames().find((f) => f.url() === `${task.stranger}/spoof`);
    assert.ok(taken, 'the frame was led back');
    assert.deepEqual(await taken.evaluate(() => heard), []);
    assert.deepEqual(await calls(page), [['', 'Ready', { layout: 'large' }]]);
  },

  async 'sends messages to the validated parent only'() {
    // This page embeds the checkout without the SDK.
    const page = await open();
    const frame = async (query) => {
      await page.evaluate((src) => {
        document.querySelectorAll('iframe').forEach((f) => f.remove());
        messages.length = 0;
        const f = document.createElement('iframe');
        f.src = src;
        document.querySelector('#pay').append(f);
        return new Promise((done) => { f.onload = done; });
      }, `${task.checkout}/embed/${session}?client_secret=${secret}&${query}`);
      await page.waitForTimeout(300);
      await say(embedded(page), 'closed');
    };
    const connect = async (over) => {
      await page.evaluate(([o, to]) => {
        const channel = new MessageChannel();
        const mine = (window.got = []);
        channel.port1.onmessage = (e) => mine.push(e.data.type);
        const ports = o.ports === 0 ? [] : [channel.port2];
        document.querySelector('#pay iframe').contentWindow.postMessage(
          { ns: 'quittance.checkout', v: 1, cid: '0'.repeat(32), seq: 0, type: 'connect', data: {}, ...o.message }, to, ports);
      }, [over, task.checkout]);
      await page.waitForTimeout(300); // long enough for an answer that should not come
      return page.evaluate(() => got);
    };

    await frame(`parent_origin=${encodeURIComponent(task.stranger)}&unguarded`);
    assert.deepEqual(await page.evaluate(() => messages), [], 'hello reached a page of another origin than the validated one');
    assert.deepEqual(await connect({}), [], 'a page of another origin was heard');

    await frame(`parent_origin=${encodeURIComponent(task.host)}`);
    assert.deepEqual(await page.evaluate(() => messages.map((m) => m.data.type)), ['hello']);
    for (const wrong of [
      { message: { ns: 'other' } }, { message: { v: 2 } }, { message: { type: 'hello' } }, { message: { cid: '0' } },
      { message: { cid: 'g'.repeat(32) } }, { message: { cid: undefined } }, { ports: 0 },
    ]) assert.deepEqual(await connect(wrong), [], JSON.stringify(wrong));
    // A sibling frame has a reference to the frame's window; it may have the parent's origin.
    for (const sibling of [task.stranger, task.host]) {
      await page.evaluate((src) => {
        const f = document.createElement('iframe');
        f.src = src;
        document.body.append(f);
        return new Promise((done) => { f.onload = done; });
      }, `${sibling}/spoof?sibling`);
      await page.waitForTimeout(500);
      assert.deepEqual(await page.frames().find((f) => f.url() === `${sibling}/spoof?sibling`).evaluate(() => heard), []);
    }
    assert.deepEqual(await connect({}), ['ready', 'closed'], 'the parent itself is heard');
    assert.deepEqual(await connect({}), [], 'once');
    await say(embedded(page), 'closed');
    await page.waitForTimeout(300);
    assert.deepEqual(await page.evaluate(() => got), [], 'a second connection took the first one’s place');
    // A checkout page outside a frame sends nothing and has no error.
    await page.goto(`${task.checkout}/embed/${session}?client_secret=${secret}&parent_origin=${encodeURIComponent(task.host)}`);
    assert.equal(await page.evaluate(() => window.quittanceSecret), secret);
    assert.ok(!page.url().includes('secret'));
  },

  async 'keeps two checkouts apart'() {
    const page = await open();
    await page.evaluate(async (s) => {
      await start({ clientSecret: s, name: 'one' }, '#pay');
      window.first = checkout;
      await start({ clientSecret: s, name: 'two' }, '#other');
    }, both);
    await called(page, 'Ready', 2);
    const inside = async (id) => (await (await page.$(`${id} iframe`)).contentFrame());
    await say(await inside('#other'), 'closed');
    await called(page, 'Close');
    assert.deepEqual((await calls(page, 'Close'))[0][0], 'two');
    await page.evaluate(() => { first.unmount(); first.unmount(); first.mount('#pay'); });
    await called(page, 'Ready', 3);
    await say(await inside('#pay'), 'complete', { completion_token: 'cpt_1' });
    await called(page, 'Complete');
    assert.deepEqual((await calls(page, 'Complete'))[0][0], 'one');
    // After the page has emptied the element itself, a checkout can be mounted again.
    await page.evaluate(() => { document.querySelector('#pay').textContent = ''; first.mount('#pay'); });
    await called(page, 'Ready', 4);
    await page.evaluate(() => first.destroy());
    assert.equal(await page.locator('iframe').count(), 1);
  },

  async 'reports its cause: the origin is refused'() {
    const page = await open(task.stranger);
    await start(page);
    await loaded(page, 1);
    await page.clock.runFor(8000);
    await loaded(page, 2); // it loads the frame once more
    await page.clock.runFor(12_000);
    assert.deepEqual(await calls(page), [['', 'Slow', null], ['', 'Error', { code: 'origin_rejected', retryable: false }]]);
  },

  async 'reports its cause: nothing listens'() {
    const page = await open(task.host + '/own');
    const probed = page.waitForEvent('requestfailed', (r) => r.url().endsWith('/sdk/integrity.json'));
    await start(page, { checkoutOrigin: task.dead });
    await loaded(page, 1);
    await page.clock.runFor(8000);
    await probed;
    await page.clock.runFor(12_000);
    assert.deepEqual(await calls(page), [['', 'Slow', null], ['', 'Error', { code: 'network', retryable: true }]]);
  },

  async 'reports its cause: the service hangs'() {
    const page = await open();
    await start(page, { clientSecret: `chs_hangs:${secret}` });
    await probe(page);
    await page.clock.runFor(12_000);
    assert.deepEqual(await calls(page), [['', 'Slow', null], ['', 'Error', { code: 'network', retryable: true }]]);
  },

  async 'reports its cause: the page never gets ready'() {
    const page = await open();
    await start(page, { clientSecret: `chs_dumb:${secret}` });
    await loaded(page, 1);
    await probe(page);
    await page.clock.runFor(12_000);
    assert.deepEqual(await calls(page), [['', 'Slow', null], ['', 'Error', { code: 'network', retryable: true }]]);
    assert.equal(await page.evaluate(() => loads), 1, 'a page that speaks is not fetched again');
  },

  async 'tries again when the first answer was lost'() {
    const page = await open();
    await start(page, { clientSecret: `chs_flaky:${secret}` });
    await loaded(page, 1);
    await fetch(task.checkout + '/recover');
    await page.clock.runFor(8000);
    await called(page, 'Ready');
    await page.clock.runFor(12_000);
    assert.deepEqual((await calls(page)).map((c) => c[1]), ['Slow', 'Ready']);
  },

  async 'reports the error of the page and nothing after it'() {
    const page = await open();
    await start(page, { clientSecret: `chs_dumb:${secret}` });
    await loaded(page, 1);
    await embedded(page).evaluate(() => document.dispatchEvent(new CustomEvent('quittance:say', { detail: { type: 'error', data: { code: 'session_not_found', retryable: false } } })));
    await called(page, 'Error');
    await page.clock.runFor(30_000);
    assert.deepEqual(await calls(page), [['', 'Error', { code: 'session_not_found', retryable: false }]]);
  },

  async 'reports nothing after it is unmounted in time'() {
    const page = await open(task.stranger);
    await start(page);
    await page.evaluate(() => checkout.unmount());
    await page.clock.runFor(30_000);
    assert.deepEqual(await calls(page), []);
  },

  async 'reports that it is too old for the service'() {
    const page = await open();
    await start(page, { clientSecret: `chs_newer:${secret}` });
    await called(page, 'Error');
    assert.deepEqual(await calls(page), [['', 'Error', { code: 'outdated', retryable: false }]]);
  },
};

try {
  await runCases(3, cases);
} finally {
  await browser.close();
}
