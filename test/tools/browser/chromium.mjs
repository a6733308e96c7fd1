// Shared by the browser tests: the system's Chromium, the output of a script, and the
// checks of every page.
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The task is the only argument. Every task has modules (the folder of the fetched
// packages), chromium (its path) and, if installed, shell (the path of Chromium without a
// window).
export const task = JSON.parse(process.argv[2]);

export function required(name) {
  return createRequire(join(task.modules, 'package.json'))(name);
}

// Chromium spends a quarter of the cost of a page on processes and documents kept ready for
// the next page, on a process for drawing, and on optimizing scripts that run once. It applies
// only the last list of features, so this list repeats the features of Playwright's list that
// matter here.
const spared = [
  'RenderDocument', 'SpareRendererForSitePerProcess',
  'AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay', 'MediaRouter', 'PaintHolding', 'ThirdPartyStoragePartitioning', 'OptimizationHints', 'AimEnabled', 'PreconnectToSearch',
];

// launch starts Chromium. A lean one saves work and has no window if task.shell is
// installed; the other is the browser of citizens.
export function launch({ lean = true } = {}) {
  const shell = lean && task.shell;
  return required('playwright-core').chromium.launch({
    executablePath: shell || task.chromium,
    timeout: 180_000, // for a busy machine
    args: [
      '--disable-background-networking', '--disable-component-update', '--disable-sync', '--process-per-site',
      ...shell ? ['--disable-gpu'] : [],
      ...lean ? ['--in-process-gpu', `--disable-features=${spared}`, '--js-flags=--no-opt,--no-maglev'] : [],
    ],
    // Chromium's own sandbox does not work for root.
    chromiumSandbox: process.getuid() !== 0,
  });
}

// tell prints an object as a line of JSON.
export function tell(what) {
  console.log(JSON.stringify(what));
}

// watch calls fault for each error on a page, and for each request to an origin that is
// not listed. An answer 4xx is not an error of the page.
export function watch(page, origins, fault) {
  page.on('pageerror', (e) => fault(`script: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error' && !/status of 4\d\d/.test(m.text())) fault(`console: ${m.text()}`);
  });
  page.on('request', (r) => {
    if (!origins.includes(new URL(r.url()).origin) && !r.url().startsWith('data:')) fault(`asks ${r.url()}`);
  });
}

// leaks returns what the page around a frame sees and must not see: the payment's status,
// amount or order in a message, and the session or its secret anywhere. The page keeps its
// messages in window.messages.
export async function leaks(page, both, others = []) {
  const sent = await page.evaluate(() => window.messages);
  const messages = JSON.stringify(sent);
  // Random identifiers can contain the digits of an amount.
  const drawn = sent.flatMap(({ data }) => [data?.cid, data?.data?.completion_token]).filter(Boolean);
  const plain = drawn.reduce((text, word) => text.replaceAll(word, ''), messages);
  const known = await page.evaluate(() => JSON.stringify([
    document.documentElement.outerHTML, location.href, history.state, document.cookie, { ...localStorage }, { ...sessionStorage },
    performance.getEntries().map((e) => e.toJSON()),
  ]));
  return [
    ...['paid', 'status', 'order_id', 'amount', '5000', '5075', '5 000', '6000', '6180', 'chs_', ...others]
      .filter((word) => plain.includes(word)).map((word) => `a message holds ${word}: ${messages}`),
    ...both.filter((word) => messages.includes(word)).map((word) => `a message holds ${word}`),
    ...both.filter((word) => known.includes(word)).map((word) => `the page holds ${word}`),
  ];
}

// limited calls run for each item, at most n at a time, with the item and the number of
// the worker.
export async function limited(n, items, run) {
  const waiting = items.slice();
  await Promise.all(Array.from({ length: n }, async (_, worker) => {
    while (waiting.length) await run(waiting.shift(), worker);
  }));
}

// moment waits some milliseconds.
export function moment(ms) {
  return new Promise((done) => { setTimeout(done, ms); });
}

// runCases runs named cases, at most n at a time, and prints {"passed": name} or
// {"fault": text} for each. task.only, if set, is a pattern of the cases to run.
export function runCases(n, cases) {
  const meant = Object.entries(cases).filter(([name]) => !task.only || new RegExp(task.only).test(name));
  return limited(n, meant, async ([name, run]) => {
    try {
      await run();
      tell({ passed: name });
    } catch (e) {
      tell({ fault: `${name}: ${e.stack}` });
    }
  });
}
