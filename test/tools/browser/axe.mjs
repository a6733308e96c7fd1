// Audits pages at several widths for people with low vision, a large zoom or large
// fingers. It prints a JSON object a line: {"page", "width", "findings", "wide", "small",
// "broken"}. findings are those of axe.
//
//   node axe.mjs '{"base": "http://…", "origins": [base, …], "tours": [[{"name": …, "path": "/…", "widths": [320], "rules": [320]}, …]], "shots": "/…"}'
//
// A tour is a sequence of views in one tab. A view with a path is loaded. A view without
// a path is what the page before becomes when a selector is pressed (press), a script is
// run (run), and a selector is visible (until). media is print, forced (colours), large (text of
// twice its size) or empty.
// A view without widths is passed without an audit. With shots, a folder, the script takes
// pictures instead: <name>-<width>.png.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, limited, moment, task, tell, watch } from './chromium.mjs';

const atOnce = 3;
const patience = 180_000; // for the pages of frames on a busy machine, ms
const silence = 90_000; // after which a page's process is taken for dead, ms
const axe = readFileSync(join(task.modules, 'node_modules/axe-core/axe.min.js'), 'utf8');
const browser = await launch({ lean: !task.shots }); // pictures show what citizens see

const tabs = [];
async function tabOf(worker) {
  if (!tabs[worker]) {
    const context = await browser.newContext({ locale: 'fr-CG', ignoreHTTPSErrors: true });
    context.setDefaultTimeout(90_000);
    await context.addInitScript(axe); // also in frames; twice as fast as adding it later
    tabs[worker] = await context.newPage();
    // The page's clock stands still, so that a picture is the same each time.
    if (task.shots) await tabs[worker].addInitScript(() => { performance.now = () => 0; });
    watch(tabs[worker], task.origins, (fault) => tell({ page: tabs[worker].showing, fault }));
  }
  return tabs[worker];
}

async function reach(tab, { name, path, widths, press, run, until, media }) {
  tab.showing = name;
  if (media !== tab.media) await tab.emulateMedia({ media: media === 'print' ? media : 'screen', forcedColors: media === 'forced' ? 'active' : 'none' });
  tab.media = media;
  if (path) {
    await resize(tab, widths[0]);
    await tab.goto(new URL(path, task.base).href);
  }
  if (press) await tab.click(press);
  if (run) await tab.evaluate(run);
  if (until) await tab.waitForSelector(until);
  await tab.evaluate((size) => { document.documentElement.style.fontSize = size; }, media === 'large' ? '200%' : '');
}

async function resize(tab, width) {
  if (width && tab.width !== width) await tab.setViewportSize({ width, height: task.shots ? 480 : 720 });
  tab.width = width || tab.width;
}

// audit examines a page. axe runs at the widths of rules; at the others only the layout is examined.
async function audit(tab, { name, rules: ruled }, width) {
  const rules = ruled.includes(width);
  for (const until = Date.now() + patience; ;) {
    const found = await answered(tab.evaluate(examine, rules), `${name} at ${width} px`);
    if (found) return tell({ page: name, width, ...found });
    if (Date.now() > until) throw new Error(`${name} at ${width} px: a frame has no page, or its page does not answer axe`);
    await moment(20);
  }
}

// Dead is thrown when a page's process does not answer. Playwright waits for it without a limit.
class Dead extends Error {}

async function answered(examined, name) {
  let alarm;
  const dead = new Promise((_, reject) => {
    alarm = setTimeout(() => reject(new Dead(`${name}: the page does not answer`)), silence);
  });
  examined.catch(() => {}); // when its tab is closed later
  try {
    return await Promise.race([examined, dead]);
  } finally {
    clearTimeout(alarm);
  }
}

async function picture(tab, { name }, width) {
  await tab.screenshot({ path: join(task.shots, `${name}-${width}.png`), fullPage: true });
  tell({ page: name, width });
}

// examine runs in the page, with axe if rules is true. It returns nothing while a frame has
// no page, or when a frame got another document meanwhile: then it is called again.
async function examine(rules) {
  const documents = Array.from(frames, ({ document }) => document);
  // A frame has an empty document until its page arrives, and for a moment none.
  const loaded = Array.from(frames, ({ document: d, location, frameElement }) =>
    d.documentElement && d.readyState === 'complete' && (location.href !== 'about:blank' || !frameElement.getAttribute('src')));
  if (!loaded.every(Boolean)) return null;

  const replaced = () => {
    const now = Array.from(frames, ({ document }) => document);
    return now.length !== documents.length || now.some((d, n) => d !== documents[n] || !d.documentElement);
  };

  let violations = [];
  if (rules) {
    // A frame that has just loaded may load again at once.
    if (documents.length) await new Promise((resolve) => { setTimeout(resolve, 50); });
    if (replaced()) return null;
    // A busy machine is no reason to give up on a frame at once. A page that is gone never
    // answers. The run must end before the next begins: axe cannot run twice in one frame.
    const options = { pingWaitTime: 10_000, frameWaitTime: 20_000, resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } };
    try {
      ({ violations } = await window.axe.run(options));
    } catch (e) {
      if (!/frame/.test(e.message)) throw e;
      return null;
    }
  }
  if (replaced()) return null;
  return {
    findings: violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(' ')}`),
    wide: wide(), small: small(), broken: broken(),
  };

  // wide returns the page's width, with the excess of its frames.
  function wide() {
    const spare = Array.from(frames, ({ innerWidth, document: d }) => d.documentElement.scrollWidth - innerWidth);
    return document.documentElement.scrollWidth + Math.max(0, ...spare);
  }

  // small returns the targets that are less than 44 px wide or high,
  // except links in a sentence. The label of a radio button counts as its target.
  function small() {
    const out = [];
    for (const e of document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')) {
      if (!e.checkVisibility()) continue;
      const around = e.parentElement.textContent.trim() !== e.textContent.trim();
      if (getComputedStyle(e).display === 'inline' && around) continue;
      // The link that skips to the content is out of sight until it has the focus.
      if (e.getBoundingClientRect().right < 0) e.focus();
      const boxes = [e, ...e.labels && ['radio', 'checkbox'].includes(e.type) ? e.labels : []].map((x) => x.getBoundingClientRect());
      const width = Math.max(...boxes.map((b) => b.right)) - Math.min(...boxes.map((b) => b.left));
      const height = Math.max(...boxes.map((b) => b.bottom)) - Math.min(...boxes.map((b) => b.top));
      if (width < 43.5 || height < 43.5) out.push(`${Math.round(width)} × ${Math.round(height)}: ${e.outerHTML.slice(0, 200)}`);
    }
    return out;
  }

  // broken returns the amounts, references and numbers that take more
  // than one line.
  function broken() {
    return [...document.querySelectorAll('.n')].filter((e) => e.getClientRects().length > 1).map((e) => e.textContent);
  }
}

async function visit(tour, worker) {
  const tab = await tabOf(worker);
  for (const view of tour) {
    await reach(tab, view);
    for (const width of view.widths) {
      await resize(tab, width);
      await (task.shots ? picture : audit)(tab, view, width);
    }
  }
}

try {
  await limited(atOnce, task.tours, async (tour, worker) => {
    try {
      await visit(tour, worker);
    } catch (e) {
      if (!(e instanceof Dead)) throw e;
      // A process of Chromium died or hangs, which says nothing about the page: once more, in
      // another tab. A page that hangs by itself does it again, and fails.
      console.error(e.message);
      tabs[worker].close().catch(() => {});
      delete tabs[worker];
      await visit(tour, worker);
    }
  });
} finally {
  await browser.close();
}
