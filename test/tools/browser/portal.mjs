// Walks through the citizen portal as taxpayers do, in the system's Chromium: sign in by the
// code in the mailbox, add a reference, choose dues, pay a part of one, read the receipt, and
// come back to the list. It prints a JSON object a line for each page.
//
//   node portal.mjs '{"portal": "http://…/portal", "inbox": "http://…/inbox/mail", "ways": […], …}'
//
// Members: portal, inbox (of the simulated mail server), ways, modules (the folder of
// playwright-core), chromium (its path), shots (a folder for screenshots; none when empty).
// A way has name, lang, script (whether the browser runs scripts), width, mail, agency,
// subject, link (its code), part (what is typed as the amount), and phone (who pays).
import { join } from 'node:path';
import { launch, limited, moment, task, tell, watch } from './chromium.mjs';

const patience = 60_000;

const browser = await launch();
try {
  await limited(2, task.ways, walk);
} finally {
  await browser.close();
}

async function walk(way) {
  let losing = false;
  const fault = (what) => losing && /net::ERR_/.test(what) || tell({ way: way.name, fault: what });
  const context = await browser.newContext({ javaScriptEnabled: way.script, locale: 'fr-CG', viewport: { width: way.width, height: 800 } });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  watch(page, [new URL(task.portal).origin], fault);
  let step = 'signin';
  try {
    await page.goto(task.portal);
    if (way.lang === 'en') await follow('a[hreflang=en]');
    await look();
    await page.fill('#address', way.mail);
    await press('form[action="/portal/sign-in"] button', 'code');
    await page.fill('#code', await codeOf(way.mail));
    await press('form[action="/portal/verify"] button', 'references');
    if (await page.locator('select[name=tenant_id]').count()) await page.selectOption('#tenant_id', way.agency);
    await page.fill('#subject_ref', way.subject);
    await page.fill('#link_code', way.link);
    await press('form[action="/portal/references"] button', 'linked');
    await open('/portal', 'dues');
    for (const box of await page.locator('input[name=due]').all()) await box.check();
    await press('form[action="/portal/cart"] button', 'cart');
    await page.locator('input[name^=amount-]').fill('1');
    await press('form[action="/portal/checkout"] button', 'refused');
    await page.locator('input[name^=amount-]').fill(way.part);
    await press('form[action="/portal/checkout"] button', 'choose');
    await press('button[name=offer][value=momo]', 'phone');
    await page.fill('#phone', way.phone);
    await press('form[action*="/phone"] button', 'review');
    if (way.script) await loseConfirmations();
    await press('form[action*="/pay"] button', '');
    step = 'receipt';
    if (way.script) await page.waitForSelector('.mark');
    else await until(() => page.locator('.mark').count(), () => page.locator('#live ~ p a.button').click());
    await look();
    await follow('main a[href*="/portal/payments"]');
    step = 'payments';
    await until(async () => await page.locator('main .rows > li a').count() === 2 && !/en cours|being/.test(await page.innerText('main')), () => page.reload());
    await look();
    await open('/portal', '');
    step = 'rest';
    await until(async () => !/en cours|being/.test(await page.innerText('main')), () => page.reload()); // the list may be ten seconds old
    await look();
    await page.locator('form[action="/portal/sign-out"] button').click();
    await page.waitForSelector('#address');
    step = 'over';
    await look();
  } catch (e) {
    fault(`after ${step}: ${e.message.split('\n')[0]}; the page reads ${await page.locator('body').innerText().catch(() => 'nothing')}`);
  } finally {
    await context.close();
  }

  // loseConfirmations confirms twice without success: the first confirmation does not reach the
  // service, of the second the answer is lost. Each time the page says that the next one is not
  // another payment, and lets the citizen confirm again.
  async function loseConfirmations() {
    losing = true;
    const lose = [(route) => route.abort('internetdisconnected'), async (route) => { await route.fetch(); await route.abort('connectionreset'); }];
    for (const lost of lose) {
      await page.route('**/pay?*', lost, { times: 1 });
      await page.locator('form[action*="/pay"] button').click();
      await page.waitForSelector('#lost[role=alert]');
      await page.waitForSelector('form[action*="/pay"] button:not([aria-disabled])');
      step = 'lost';
      await look();
      await page.evaluate(() => document.getElementById('lost').remove());
    }
    losing = false;
  }

  // press sends a form and looks at the page that answers.
  async function press(what, next) {
    await follow(what);
    if (next) {
      step = next;
      await look();
    }
  }

  async function follow(what) {
    await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), page.locator(what).first().click()]);
  }

  // open follows the navigation.
  async function open(path, next) {
    await press(`nav a[href^="${path}?"]`, next);
  }

  async function look() {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > way.width) fault(`${step} is ${wide} px wide at ${way.width} px`);
    if (task.shots) await page.screenshot({ path: join(task.shots, `${way.name}-${step}.png`), fullPage: true });
    tell({
      way: way.name, step, lang: await page.getAttribute('html', 'lang'), path: new URL(page.url()).pathname,
      title: clean(await page.locator('h1').first().innerText()), text: clean(await page.locator('main').innerText()),
    });
  }
}

// until does an action again until something is so.
async function until(so, act) {
  for (const end = Date.now() + patience; !await so(); await moment(200)) {
    if (Date.now() > end) throw new Error(`not within ${patience / 1000} s`);
    await act();
  }
}

// codeOf waits for the code that an address gets.
async function codeOf(mail) {
  for (const end = Date.now() + patience; Date.now() < end; await moment(100)) {
    const all = await (await fetch(task.inbox, { headers: { Accept: 'application/json' } })).json();
    const code = all.find((m) => m.to === mail)?.text.match(/\d{6}/)?.[0];
    if (code) return code;
  }
  throw new Error(`${mail} gets no code`);
}

// clean replaces every kind of space by a plain one.
function clean(s) {
  return s.replace(/\s+/gu, ' ').trim();
}
