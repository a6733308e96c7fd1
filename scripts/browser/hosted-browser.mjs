// What the tests of the hosted page share: the system's Chromium, the words in
// which a script reports, and what no page of ours may do.
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The task comes as the one argument. Every task names modules (the folder that
// holds what is fetched) and chromium (its path).
export const task = JSON.parse(process.argv[2]);

export function required(name) {
  return createRequire(join(task.modules, 'package.json'))(name);
}

export function launch() {
  return required('playwright-core').chromium.launch({
    executablePath: task.chromium,
    args: ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--process-per-site'],
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
