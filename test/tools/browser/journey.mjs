// Pays one session on its hosted page as a citizen does, in the system's Chromium. It
// prints a JSON object a line for each page.
//
//   node journey.mjs '{"url": "http://…/c/chs_…", "phone": "06 600 00 01", …}'
//
// Members: url, phone, language (fr or en, chosen by the page's link), javascript, modules
// (the folder of playwright-core), chromium (its path), shots (a folder for screenshots;
// none when empty).
import { launch, task, tell } from './chromium.mjs';

const widths = [1280, 320];
const patience = 60_000;

const browser = await launch();
try {
  const context = await browser.newContext({ javaScriptEnabled: task.javascript, locale: 'fr-CG' });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  page.on('pageerror', (e) => tell({ fault: `script: ${e.message}` }));
  page.on('console', (m) => m.type() === 'error' && tell({ fault: `console: ${m.text()}` }));
  page.on('request', (r) => {
    if (new URL(r.url()).origin !== new URL(task.url).origin && !r.url().startsWith('data:')) tell({ fault: `asks ${r.url()}` });
  });

  await page.goto(task.url);
  if (task.language === 'en') await page.click('a[hreflang=en]');
  await page.locator(`html[lang=${task.language}]`).locator('button[name=offer], #phone').first().waitFor(); // a click does not wait for the next page
  if (await page.locator('button[name=offer]').count()) { // there is more than one offer
    await look('choose');
    await page.click('button[name=offer][value=momo]');
  }
  await look('phone');
  await page.fill('#phone', task.phone);
  await page.click('form[action*="/phone"] button');
  await page.waitForSelector('form[action*="/pay"]');
  await look('review');
  await page.click('form[action*="/pay"] button');
  await page.waitForURL((u) => !u.pathname.endsWith('/pay'));
  if (await page.locator('#live').count()) await look('waiting');
  if (task.javascript) {
    await page.waitForSelector('.mark'); // the page changes by itself
  } else {
    for (const until = Date.now() + patience; (await page.locator('.mark').count()) === 0; ) {
      if (Date.now() > until) throw new Error('no result');
      await page.click('#live ~ p a.button');
      await page.waitForTimeout(200);
    }
  }
  await look('result');

  async function look(step) {
    // The waiting page loads itself again, or the next one comes: all is read at once.
    const read = await (await page.waitForFunction(() => document.querySelector('h1') && {
      lang: document.documentElement.lang, title: document.querySelector('h1').innerText,
      rows: [...document.querySelectorAll('dl > div')].map((row) => [row.querySelector('dt').innerText, row.querySelector('dd').innerText]),
    })).jsonValue();
    const seen = { step, lang: read.lang, title: clean(read.title), list: Object.fromEntries(read.rows.map(([name, value]) => [clean(name), clean(value)])) };
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 });
      // The waiting page loads itself again, and has no element for a moment.
      const wide = await (await page.waitForFunction(() => document.documentElement?.scrollWidth)).jsonValue();
      if (wide > width) tell({ fault: `${step} is ${wide} px wide at ${width} px` });
      if (task.shots) await page.screenshot({ path: join(task.shots, `${task.language}-${step}-${width}.png`), fullPage: true });
    }
    tell(seen);
  }
} finally {
  await browser.close();
}

// clean replaces every kind of space by a plain one.
function clean(s) {
  return s.replace(/\s+/gu, ' ').trim();
}
