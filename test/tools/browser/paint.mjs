// Measures the hosted page in a browser and prints a JSON object a line.
//
//   node paint.mjs '{"first": {"url": …, "cookie": "", "within": 1500, "tries": 3}}'
//   node paint.mjs '{"paid": {"payments": [{"url", "collection"}], "control": …}}'
//
// first loads a page with an empty cache, over a line of 400 ms and 400 kbit/s, with a
// processor six times slower. It repeats this until a try paints within the given
// milliseconds, at most tries times (cookie is NAME=VALUE, may be empty): {"paint", "requests", "bytes", "encodings"}. bytes
// counts the answers with their headers, as sent.
//
// paid opens pages that wait for their payers and approves each collection. It prints the
// time until the page has painted the receipt: {"paid": ms}.
import { launch, moment, task, tell } from './chromium.mjs';

const line = { offline: false, latency: 400, downloadThroughput: 400_000 / 8, uploadThroughput: 400_000 / 8 };
const slower = 6;
// A browser has six connections to a host, and each live page keeps one of them.
const pagesOfWindow = 4;
const apart = 300; // between two approvals, ms

const browser = await launch({ lean: false });
try {
  if (task.first) await first(task.first);
  if (task.paid) await paid(task.paid);
} finally {
  await browser.close();
}

async function first({ url, cookie, within, tries }) {
  for (let n = 0; n < tries; n++) {
    const context = await browser.newContext({ locale: 'fr-CG', viewport: { width: 360, height: 740 } });
    const [name, value] = cookie.split('=');
    if (value) await context.addCookies([{ name, value, url }]);
    const tab = await context.newPage();
    const devtools = await context.newCDPSession(tab);
    const encodings = {}, answers = new Map();
    let bytes = 0;
    devtools.on('Network.responseReceived', ({ requestId, response }) => {
      if (response.url.startsWith('data:')) return;
      answers.set(requestId, response.url);
      encodings[new URL(response.url).pathname.replace(/.*\//, '')] = response.headers['Content-Encoding'] ?? '';
    });
    devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      if (answers.has(requestId)) bytes += encodedDataLength;
    });
    await devtools.send('Network.enable');
    await devtools.send('Network.emulateNetworkConditions', line);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: slower });
    await tab.goto(url, { waitUntil: 'load' });
    const paint = await painted(tab);
    tell({ paint: Math.round(paint), requests: answers.size, bytes, encodings });
    await context.close();
    if (paint <= within) return;
  }
}

async function paid({ payments, control }) {
  const tabs = [];
  for (let n = 0; n < payments.length; n += pagesOfWindow) {
    const context = await browser.newContext({ locale: 'fr-CG', viewport: { width: 360, height: 740 } });
    for (const payment of payments.slice(n, n + pagesOfWindow)) {
      const tab = await context.newPage();
      const live = tab.waitForResponse((r) => r.url().endsWith('/live'));
      await tab.goto(payment.url);
      await live;
      tabs.push(tab);
    }
  }
  await moment(2500); // a page loads itself again after 2 s at the earliest
  await Promise.all(payments.map(async ({ collection }, n) => {
    await moment(n * apart);
    // Polling forty pages would distort the measurement, so this waits for an event.
    const tab = tabs[n], again = tab.waitForEvent('domcontentloaded', { timeout: 60_000 }), approved = Date.now();
    const answer = await fetch(`${control}/collections/${collection}/approve`, { method: 'POST' });
    if (!answer.ok) throw new Error(`approving: ${answer.status}`);
    await again;
    if (!await tab.locator('.mark.ok').count()) throw new Error(`no receipt: ${await tab.textContent('h1')}`);
    const shown = await painted(tab) + await tab.evaluate(() => performance.timeOrigin);
    tell({ paid: Math.round(shown - approved) });
  }));
}

// painted returns the time of the first paint, in ms since the request.
async function painted(tab) {
  await tab.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length);
  return tab.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
}
