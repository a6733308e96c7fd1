import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
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

test('who copies the example of the README does not unlock for a test payment', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  assert.match(readme, /if \(event\.event === 'checkout\.completed' && event\.livemode\) await unlock\(/);
  assert.equal(readme.split('unlock(').length, 2);
});
