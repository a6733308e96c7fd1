// What the tests in a browser share: the system's Chromium, the words in which a
// script reports, and what no page of ours may do.
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The task comes as the one argument. Every task names modules (the folder that
// holds what is fetched), chromium (its path) and shell (that of Chromium without a
// window, if there is one).
export const task = JSON.parse(process.argv[2]);

export function required(name) {
  return createRequire(join(task.modules, 'package.json'))(name);
}

// A quarter of what it costs Chromium to open a page is spent on processes and
// documents kept ready for the next one. It heeds the last list of features alone, so
// that what of Playwright's own matters here is repeated.
const spared = [
  'RenderDocument', 'SpareRendererForSitePerProcess',
  'AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay', 'MediaRouter', 'PaintHolding', 'ThirdPartyStoragePartitioning', 'OptimizationHints', 'AimEnabled', 'PreconnectToSearch',
];

// launch starts Chromium: lean, which is without a window of its own where that
// (task.shell) is installed, or as citizens have it.
export function launch({ lean = true } = {}) {
  const shell = lean && task.shell;
  return required('playwright-core').chromium.launch({
    executablePath: shell || task.chromium,
    timeout: 180_000, // for a busy machine
    args: [
      '--disable-background-networking', '--disable-component-update', '--disable-sync', '--process-per-site',
      ...shell ? ['--disable-gpu'] : [], ...lean && !shell ? ['--in-process-gpu', `--disable-features=${spared}`] : [],
    ],
    // Chromium's own sandbox does not work for root.
    chromiumSandbox: process.getuid() !== 0,
  });
}

// tell prints an object as a line.
export function tell(what) {
  console.log(JSON.stringify(what));
}

// watch tells fault of each error on a page, and of each question to anybody but
// the service. A page that is answered with 4xx is no error of the page's.
export function watch(page, origins, fault) {
  page.on('pageerror', (e) => fault(`script: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error' && !/status of 4\d\d/.test(m.text())) fault(`console: ${m.text()}`);
  });
  page.on('request', (r) => {
    if (!origins.includes(new URL(r.url()).origin) && !r.url().startsWith('data:')) fault(`asks ${r.url()}`);
  });
}

// leaks are the words that the page around a frame could see and must not: in any
// message how the payment stands, what is paid or for whom, and anywhere at all the
// session and its secret. The page keeps its messages in window.messages.
export async function leaks(page, both, others = []) {
  const said = await page.evaluate(() => window.messages);
  const messages = JSON.stringify(said);
  // Random digits are no amount.
  const drawn = said.flatMap(({ data }) => [data?.cid, data?.data?.completion_token]).filter(Boolean);
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

// limited runs what is made of the items, at most n at a time, and tells it by
// which of the n.
export async function limited(n, items, run) {
  const waiting = items.slice();
  await Promise.all(Array.from({ length: n }, async (_, worker) => {
    while (waiting.length) await run(waiting.shift(), worker);
  }));
}

// moment lets milliseconds pass.
export function moment(ms) {
  return new Promise((done) => { setTimeout(done, ms); });
}

// runCases runs named cases, at most n at a time, and tells {"passed": name} or
// {"fault": text} of each. task.only, if set, is a pattern of those meant.
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
