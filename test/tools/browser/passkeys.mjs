// Adds passkeys to citizens' accounts and signs in with them, in the system's Chromium with a
// virtual authenticator. It prints a JSON object a line: {"passed": name} or {"fault": text}.
//
//   node passkeys.mjs '{"portal": "http://localhost:…", "inbox": "http://…/inbox", "run": "…", …}'
//
// Members: portal, the service at a name for which browsers allow passkeys; inbox, of the
// simulators; run, a word that makes addresses unique; modules (the folder of
// playwright-core), chromium (its path), shots (a folder for screenshots; none when empty).
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { launch, moment, runCases, task, watch } from './chromium.mjs';

const patience = 60_000;
const browser = await launch();

// person opens a page of the service in a browser of its own, with a device that holds
// passkeys. The policy of a page that is not the portal's is left aside.
async function person({ verifies = true, at = '/docs', width = 1280 } = {}) {
  const context = await browser.newContext({ bypassCSP: at === '/docs', locale: 'fr-CG', viewport: { width, height: 800 } });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const devices = await context.newCDPSession(page);
  await devices.send('WebAuthn.enable');
  const { authenticatorId: device } = await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: verifies, automaticPresenceSimulation: true },
  });
  const faults = [];
  if (at !== '/docs') watch(page, [task.portal], (f) => faults.push(f));
  await page.goto(`${task.portal}${at}`);
  return { context, page, devices, device, faults };
}

// call calls the citizen API from the page.
function call(page, method, path, body) {
  return page.evaluate(async ([method, path, body]) => {
    const answer = await fetch(`/api/v1/citizen/${path}`, {
      method, headers: body ? { 'Content-Type': 'application/json' } : {}, body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text && JSON.parse(text) };
  }, [method, path, body]);
}

async function signIn(page, email) {
  assert.equal((await call(page, 'POST', 'sign-in', { email })).status, 202);
  assert.equal((await call(page, 'POST', 'sign-in/verify', { email, code: await mailed(email, /\d{6}/) })).status, 204);
}

// mailed waits for a mail to an address that matches, and returns the match.
async function mailed(email, what) {
  for (let waited = 0; waited < patience; waited += 100) {
    const mails = await (await fetch(`${task.inbox}/mail`, { headers: { Accept: 'application/json' } })).json();
    const found = mails.filter((m) => m.to === email).map((m) => m.text.match(what)?.[0]).findLast(Boolean);
    if (found) return found;
    await moment(100); // the inbox tells nobody
  }
  assert.fail(`${email} gets no mail with ${what}`);
}

// add makes a passkey with the device, as a page does. It returns the last answer, or the
// name of the browser's error.
function add(page) {
  return page.evaluate(async () => {
    const post = (path, body) => fetch(`/api/v1/citizen/passkeys/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
    const { publicKey } = await (await post('begin')).json();
    try {
      const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
      const answer = await post('finish', made.toJSON());
      return { status: answer.status, body: await answer.json() };
    } catch (e) {
      return { error: e.name };
    }
  });
}

// prove signs in with a passkey of the device, as a page does.
function prove(page) {
  return page.evaluate(async () => {
    const post = (path, body) => fetch(`/api/v1/citizen/sign-in/passkey/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
    const { publicKey } = await (await post('begin')).json();
    const proof = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
    return (await post('finish', proof.toJSON())).status;
  });
}

// enter signs in by a code on the portal's pages.
async function enter(page, email) {
  await page.fill('#address', email);
  await press(page, 'form[action="/portal/sign-in"] button');
  await page.fill('#code', await mailed(email, /\d{6}/));
  await press(page, 'form[action="/portal/verify"] button');
}

async function press(page, what) {
  await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), page.locator(what).first().click()]);
}

// look takes a picture, and fails if the page is wider than the screen.
async function look(page, name) {
  const { width } = page.viewportSize();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `${name} is wider than ${width} px`);
  if (task.shots) await page.screenshot({ path: join(task.shots, `passkeys-${name}-${width}.png`), fullPage: true });
}

const reads = async (page, text) => assert.ok((await page.innerText('main')).includes(text), `${page.url()} reads ${await page.innerText('main')}`);
const shows = (page, what) => page.locator(what).isVisible();

// inPortal adds a passkey on the page after the first sign-in, signs in with it, and removes it.
async function inPortal(lang, width, says) {
  const { context, page, devices, device, faults } = await person({ at: `/portal?lang=${lang}`, width });
  const email = `portal.${lang}.${task.run}@example.org`;
  const path = () => new URL(page.url()).pathname;
  assert.ok(await shows(page, '#passkey button.plain'), 'no passkey beside the code');
  await look(page, `signin-${lang}`);
  await enter(page, email);
  assert.equal(path(), '/portal/references');
  await page.waitForSelector('#passkey-offer', { state: 'visible' });
  await look(page, `offer-${lang}`);
  await press(page, '#passkey button');
  assert.equal(path(), '/portal/security');
  await reads(page, says.added);
  assert.equal(await page.locator('.cards > li').count(), 1);
  assert.ok(await shows(page, '#passkey') && !await shows(page, '#passkey-without'));
  await look(page, `security-${lang}`);
  await page.click('#passkey button');
  await page.waitForSelector('#passkey-fault', { state: 'visible' });
  await reads(page, says.known);
  await look(page, `known-${lang}`);

  // In this browser the passkey is asked for first, by the field and by the button.
  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId: device, enabled: false });
  await press(page, 'form[action="/portal/sign-out"] button');
  assert.ok(await page.evaluate(() => document.querySelector('#passkey').compareDocumentPosition(document.querySelector('#address')) & Node.DOCUMENT_POSITION_FOLLOWING), 'the code comes first');
  assert.ok(await shows(page, '#passkey'));
  await look(page, `first-${lang}`);
  // The device answers from the click on: before, it could answer the request of the field, and the page would be left under the
  // click. A request that waits already is not answered.
  await page.route('**/sign-in/passkey/begin*', async (route) => {
    await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId: device, enabled: true });
    await route.continue();
  }, { times: 1 });
  await press(page, '#passkey button');
  assert.equal(path(), '/portal');
  assert.ok(!await page.locator('#passkey-offer').count(), 'a passkey is offered to whoever has one');
  await press(page, 'nav a[href^="/portal/security"]');
  await press(page, 'form[action$="/remove"] button');
  await reads(page, says.removed);
  assert.equal(await page.locator('.cards > li').count(), 0);
  await look(page, `none-${lang}`);
  await mailed(email, says.mail);

  // A passkey that was removed opens nothing.
  await press(page, 'form[action="/portal/security/sign-out"] button');
  await reads(page, says.out);
  await page.click('#passkey button');
  await page.waitForSelector('#passkey-fault', { state: 'visible' });
  await reads(page, says.unknown);
  await look(page, `unknown-${lang}`);
  assert.deepEqual(faults, []);
  await context.close();
}

await runCases(1, {
  async 'the portal in French on a phone'() {
    await inPortal('fr', 320, {
      added: 'La clé d’accès est ajoutée.', known: 'Cet appareil a déjà une clé d’accès de votre compte.', removed: 'La clé d’accès est retirée', mail: /a été retirée de votre compte/,
      out: 'Vous êtes déconnecté partout.', unknown: 'Cette clé d’accès n’ouvre aucun compte',
    });
  },

  async 'the portal in English on a wide screen'() {
    await inPortal('en', 1280, {
      added: 'The passkey is added.', known: 'This device already has a passkey of your account.', removed: 'The passkey is removed', mail: /was removed from your account/,
      out: 'You are signed out everywhere.', unknown: 'This passkey opens no account',
    });
  },

  async 'a passkey is put off'() {
    const { context, page, faults } = await person({ at: '/portal?lang=fr', verifies: false });
    await enter(page, `later.${task.run}@example.org`);
    await page.waitForSelector('#passkey-offer', { state: 'visible' });
    await page.click('#passkey button');
    await page.waitForSelector('#passkey-fault', { state: 'visible' });
    await reads(page, 'La clé d’accès n’a pas été ajoutée.');
    await look(page, 'refused-fr');
    await press(page, 'form[action="/portal/security/later"] button');
    assert.ok(!await page.locator('#passkey-offer').count(), 'it is offered again');
    assert.deepEqual(faults, []);
    await context.close();
  },

  async 'without a script the page says so, and signs out everywhere'() {
    const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 320, height: 800 } });
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    await page.goto(`${task.portal}/portal?lang=en`);
    assert.ok(!await shows(page, '#passkey'));
    await enter(page, `plain.${task.run}@example.org`);
    assert.ok(!await shows(page, '#passkey-offer'));
    await press(page, 'nav a[href^="/portal/security"]');
    await reads(page, 'you need JavaScript and a recent browser');
    assert.ok(!await shows(page, '#passkey'));
    await look(page, 'plain-en');
    await press(page, 'form[action="/portal/security/sign-out"] button');
    await reads(page, 'You are signed out everywhere.');
    await context.close();
  },

  async 'a passkey is added, signs in and is removed'() {
    const { context, page } = await person();
    await signIn(page, `passkey.${task.run}@example.org`);
    const added = await add(page);
    assert.equal(added.status, 201, JSON.stringify(added));
    const me = await call(page, 'GET', 'me');
    await call(page, 'POST', 'sign-out');
    assert.equal((await call(page, 'GET', 'me')).status, 401);
    for (let again = 0; again < 2; again++) assert.equal(await prove(page), 204);
    assert.deepEqual(await call(page, 'GET', 'me'), me);
    const twice = await add(page);
    assert.equal(twice.error, 'InvalidStateError', `the device adds its passkey twice: ${JSON.stringify(twice)}`);
    assert.deepEqual((await call(page, 'GET', 'passkeys')).body.passkeys.map((p) => p.id), [added.body.id]);
    assert.equal((await call(page, 'DELETE', `passkeys/${added.body.id}`)).status, 204);
    await call(page, 'POST', 'sign-out');
    assert.equal(await prove(page), 401);
    await context.close();
  },

  async 'a device that does not verify its user adds nothing'() {
    const { context, page } = await person({ verifies: false });
    await signIn(page, `unverified.${task.run}@example.org`);
    assert.equal((await add(page)).error, 'NotAllowedError');
    assert.deepEqual((await call(page, 'GET', 'passkeys')).body.passkeys, []);
    await context.close();
  },
});
await browser.close();
