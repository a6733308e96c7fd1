// Adds passkeys to citizens' accounts and signs in with them, in the system's Chromium with a
// virtual authenticator. It prints a JSON object a line: {"passed": name} or {"fault": text}.
//
//   node passkeys.mjs '{"portal": "http://localhost:…", "inbox": "http://…/inbox", "run": "…", …}'
//
// Members: portal, the service at a name for which browsers allow passkeys; inbox, of the
// simulators; run, a word that makes addresses unique; modules (the folder of
// playwright-core), chromium (its path).
import assert from 'node:assert/strict';
import { launch, moment, runCases, task } from './chromium.mjs';

const patience = 60_000;
const browser = await launch();

// person opens a page of the service in a browser of its own, with a device that holds
// passkeys. The page's policy is left aside: it is no page of the portal.
async function person({ verifies = true } = {}) {
  const context = await browser.newContext({ bypassCSP: true, locale: 'fr-CG' });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const devices = await context.newCDPSession(page);
  await devices.send('WebAuthn.enable');
  const { authenticatorId: device } = await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: verifies, automaticPresenceSimulation: true },
  });
  await page.goto(`${task.portal}/docs`);
  return { context, page, devices, device };
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
  for (let waited = 0; waited < patience; waited += 100) {
    const mails = await (await fetch(`${task.inbox}/mail`, { headers: { Accept: 'application/json' } })).json();
    const code = mails.findLast((m) => m.to === email)?.text.match(/\d{6}/)?.[0];
    if (code) {
      assert.equal((await call(page, 'POST', 'sign-in/verify', { email, code })).status, 204);
      return;
    }
    await moment(100); // the inbox tells nobody
  }
  assert.fail('no code was sent');
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

await runCases(1, {
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
