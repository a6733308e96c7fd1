// Looks at pages at several widths as somebody does who sees badly, zooms in or
// has large fingers, and prints what is wrong, a JSON object a line:
// {"page", "width", "findings", "wide", "small"}.
//
//   node axe.mjs '{"base": "http://…", "pages": [{"name": …, "widths": [320]}], "shots": "/…"}'
//
// Pages are at base/pages/<name>. With shots, a folder, pictures are taken
// instead: <name>-<width>.png.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, limited, task, tell, watch } from './hosted-browser.mjs';

const atOnce = 3;
const axe = readFileSync(join(task.modules, 'node_modules/axe-core/axe.min.js'), 'utf8');
const browser = await launch();

const tabs = [];
async function tabOf(worker) {
  if (!tabs[worker]) {
    const context = await browser.newContext({ locale: 'fr-CG' });
    // So that a picture is the same each time: the clock of the page stands still.
    if (task.shots) await context.addInitScript(() => { performance.now = () => 0; });
    tabs[worker] = await context.newPage();
    watch(tabs[worker], [task.base], (fault) => tell({ page: tabs[worker].showing, fault }));
  }
  return tabs[worker];
}

async function audit(tab, { name: page, widths }) {
  await tab.evaluate(axe);
  for (const width of widths) {
    await tab.setViewportSize({ width, height: 720 });
    tell({
      page, width,
      findings: await tab.evaluate(async () => {
        const { violations } = await window.axe.run({ resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } });
        return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(' ')}`);
      }),
      wide: await tab.evaluate(() => document.documentElement.scrollWidth),
      small: await tab.evaluate(small),
    });
  }
}

async function picture(tab, { name, widths }) {
  for (const width of widths) {
    await tab.setViewportSize({ width, height: 480 });
    await tab.screenshot({ path: join(task.shots, `${name}-${width}.png`), fullPage: true });
    tell({ page: name, width });
  }
}

// small runs in the page: what one can press and is less than 44 px wide or high,
// words in a sentence aside. A radio is pressed by its label as well.
function small() {
  const out = [];
  for (const e of document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')) {
    if (!e.checkVisibility()) continue;
    const around = e.parentElement.textContent.trim() !== e.textContent.trim();
    if (getComputedStyle(e).display === 'inline' && around) continue;
    // What skips to the content is out of sight until it has the focus.
    if (e.getBoundingClientRect().right < 0) e.focus();
    const boxes = [e, ...e.labels && ['radio', 'checkbox'].includes(e.type) ? e.labels : []].map((x) => x.getBoundingClientRect());
    const width = Math.max(...boxes.map((b) => b.right)) - Math.min(...boxes.map((b) => b.left));
    const height = Math.max(...boxes.map((b) => b.bottom)) - Math.min(...boxes.map((b) => b.top));
    if (width < 43.5 || height < 43.5) out.push(`${Math.round(width)} × ${Math.round(height)}: ${e.outerHTML.slice(0, 200)}`);
  }
  return out;
}

try {
  await limited(atOnce, task.pages, async (page, worker) => {
    const tab = await tabOf(worker);
    tab.showing = page.name;
    await tab.goto(`${task.base}/pages/${page.name}`);
    await (task.shots ? picture : audit)(tab, page);
  });
} finally {
  await browser.close();
}
