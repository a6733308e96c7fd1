import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { QuittanceError, Receiver, SignatureError } from '@quittance/node';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const another = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const body = '{"event":"checkout.completed","order_id":"é","amount":5000000000}';
const at = (seconds) => String(Math.floor(Date.now() / 1000) + seconds);
const sign = (by, id, timestamp, text) => `v1,${createHmac('sha256', Buffer.from(by.slice(6), 'base64')).update(`${id}.${timestamp}.${text}`).digest('base64')}`;
const headers = (id, timestamp, signature) => ({ 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature });

test('what the service did not sign is refused', () => {
  const receiver = new Receiver(secret);
  const now = at(0);
  const good = sign(secret, 'evt_1', now, body);
  for (const [name, given] of Object.entries({
    nothing: {},
    'no signature': headers('evt_1', now, ''),
    'no id': headers('', now, sign(secret, '', now, body)),
    'no time': headers('evt_1', '', sign(secret, 'evt_1', '', body)),
    'a time that is none': headers('evt_1', 'now', sign(secret, 'evt_1', 'now', body)),
    'another key': headers('evt_1', now, sign(another, 'evt_1', now, body)),
    'another id': headers('evt_2', now, good),
    'another body': headers('evt_1', now, sign(secret, 'evt_1', now, `${body} `)),
    'too old': headers('evt_1', at(-360), sign(secret, 'evt_1', at(-360), body)),
    'from the future': headers('evt_1', at(360), sign(secret, 'evt_1', at(360), body)),
    'a part of a signature': headers('evt_1', now, good.slice(0, 20)),
    'an empty signature': headers('evt_1', now, 'v1,'),
    'another version': headers('evt_1', now, `v2${good.slice(2)}`),
    'no base64': headers('evt_1', now, 'v1,*** é'),
  })) {
    assert.throws(() => receiver.verify(given, body), SignatureError, name);
  }
  assert.throws(() => receiver.verify(headers('evt_1', now, good), JSON.parse(body)), /^QuittanceError: body must be the bytes/);
});

test('what the service signed is read, also while a secret is rotated', () => {
  const now = at(0);
  const good = sign(secret, 'evt_1', now, body);
  const two = `${sign(another, 'evt_1', now, body)} ${good}`;
  for (const receiver of [new Receiver(secret), new Receiver(another, secret)]) {
    for (const given of [headers('evt_1', now, good), headers('evt_1', now, two), headers('evt_1', now, two.split(' ')), headers('evt_1', at(-240), sign(secret, 'evt_1', at(-240), body)), new Headers(headers('evt_1', now, two))]) {
      for (const as of [body, Buffer.from(body), new TextEncoder().encode(body)]) {
        assert.deepEqual(receiver.verify(given, as), JSON.parse(body));
      }
    }
  }
  for (const text of ['', '[]', 'null', '{"event":1}']) {
    assert.throws(() => new Receiver(secret).verify(headers('evt_1', now, sign(secret, 'evt_1', now, text)), text), (err) => err instanceof QuittanceError && !(err instanceof SignatureError));
  }
});

test('secrets', () => {
  for (const secrets of [[], [''], [undefined], ['whsec_'], [secret.slice(6)], ['whsec_***'], [secret, 'sk_test_x']]) {
    assert.throws(() => new Receiver(...secrets), (err) => err instanceof QuittanceError && !err.message.includes('MfKQ'));
  }
  for (const short of ['whsec_MfKQ', secret.slice(0, -4)]) {
    assert.throws(() => new Receiver(another, short), (err) => err instanceof QuittanceError && err.message.startsWith('secret 2 is too short') && !err.message.includes('MfKQ'));
  }
});

// The README's receiver, as a reader runs it with a database of his own.
async function readme(t, db, key) {
  const text = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const sample = /```js\n(const receiver = [^]*?)\.listen\(8000\);\n```/.exec(text)[1];
  const process = { env: { QUITTANCE_WEBHOOK_SECRET: secret, QUITTANCE_KEY: key } };
  const run = new Function('createServer', 'Receiver', 'SignatureError', 'process', 'db', sample.replace('createServer(', 'return createServer('));
  const server = run(createServer, Receiver, SignatureError, process, db).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return async (event, by = secret) => {
    const now = at(0);
    const text = typeof event === 'string' ? event : JSON.stringify(event);
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, { method: 'POST', body: text, headers: headers('evt_1', now, sign(by, 'evt_1', now, text)) });
    return answer.status;
  };
}

const paid = { event: 'checkout.completed', livemode: true, session_id: 'chs_1', order_id: 'o', sequence: 3, amount: 5000, currency: 'XAF' };

// An integrator's database was away for a minute: the process ended, and the payment was lost.
test('the receiver of the README answers 2xx only after it has stored', async (t) => {
  let query = async () => {};
  const stored = [];
  const deliver = await readme(t, { query: async (...args) => { await query(); stored.push(args[1]); } }, 'sk_live_x');

  assert.equal(await deliver(paid, another), 400);
  assert.equal(await deliver('no JSON'), 500);
  query = async () => { throw new Error('the database is away'); };
  assert.equal(await deliver(paid), 500);
  query = () => { throw new Error('the database is away'); };
  assert.equal(await deliver(paid), 500);
  assert.deepEqual(stored, []);

  let store;
  let asked;
  const asks = new Promise((resolve) => { asked = resolve; });
  query = () => new Promise((resolve) => { store = resolve; asked(); });
  let answered = false;
  const answer = deliver(paid).then((status) => { answered = true; return status; });
  await asks;
  await setTimeout(50); // an answer that does not wait comes at once
  assert.equal(answered, false);
  store();
  assert.equal(await answer, 204);
  assert.deepEqual(stored, [['chs_1', 'o', 3, true, 5000, 'XAF']]);
});

test('the receiver of the README stores what concerns a case, of its own mode', async (t) => {
  const stored = [];
  const deliver = await readme(t, { query: async (_, values) => { stored.push(values[3]); } }, 'sk_test_x');
  for (const event of [paid, ...['failed', 'cancelled', 'expired', 'late_payment', 'of_2030'].map((name) => ({ ...paid, livemode: false, event: `checkout.${name}` })),
    { ...paid, livemode: false, event: 'checkout.reversed', was_completed: false }]) {
    assert.equal(await deliver(event), 204, event.event);
  }
  assert.deepEqual(stored, []);
  await deliver({ ...paid, livemode: false });
  await deliver({ ...paid, livemode: false, event: 'checkout.reversed', was_completed: true });
  assert.deepEqual(stored, [true, false]);
});

// The statement of the README is that of sdk/go, which a test runs on Postgres.
test('the READMEs of both SDKs store by one statement', async () => {
  const statement = async (path) => /INSERT INTO payments[^]*?excluded\.sequence`/.exec(await readFile(new URL(path, import.meta.url), 'utf8'))[0].replaceAll(/\s+/g, ' ');
  assert.equal(await statement('../README.md'), await statement('../../go/README.md'));
});
