// Reads the documentation as an integrator does. It prints a JSON object a line: {"passed": name} or
// {"fault": text}.
//
//   node docs.mjs '{"docs": "http://…", …}'
//
// Members: docs, where the documentation is; modules (the folder of playwright-core), chromium (its path).
import assert from 'node:assert/strict';
import { launch, runCases, task } from './chromium.mjs';

const browser = await launch();

async function open(path, options = {}) {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'], ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on('pageerror', (e) => page.faults.push(e.message));
  page.on('console', (m) => page.faults.push(m.text()));
  await page.goto(task.docs + path);
  return page;
}

const cases = {
  async 'finds a section by its words'() {
    const page = await open('/docs');
    await page.getByRole('searchbox', { name: 'Search' }).fill('redeliver');
    const first = page.locator('form[role=search] li a').first();
    await first.waitFor();
    assert.match(await page.locator('form[role=search] p').textContent(), /^\d+ sections$/);
    await first.click();
    await page.waitForURL(/#/);
    assert.match(await page.locator('main').textContent(), /redeliver/);
    assert.deepEqual(page.faults, []); // the policy allows all of it
  },

  async 'finds without accents, and says that there is nothing'() {
    const page = await open('/docs/fr');
    const box = page.getByRole('searchbox', { name: 'Rechercher' });
    await box.fill('cle evenement');
    await page.locator('form[role=search] li a[href^="/docs/fr/"]').first().waitFor();
    await box.fill('zzzz');
    await page.getByText('Rien trouvé').waitFor();
    assert.equal(await page.locator('form[role=search] li').count(), 0);
  },

  async 'copies a sample'() {
    const page = await open('/docs/testing');
    const sample = page.locator('.sample').last();
    await sample.getByRole('button', { name: 'Copy' }).click();
    await sample.getByRole('button', { name: 'Copied' }).waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^quittance-dev listen /);
    assert.deepEqual(page.faults, []);
  },

  async 'is whole without scripts'() {
    const page = await open('/docs/testing', { javaScriptEnabled: false });
    assert.equal(await page.locator('button, input').count(), 0);
    assert.ok(await page.locator('main pre').count() > 2);
  },
};

try {
  await runCases(2, cases);
} finally {
  await browser.close();
}
