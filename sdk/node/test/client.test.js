import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { ProblemError, Quittance, QuittanceError } from '@quittance/node';

const key = 'sk_test_TheKeyOfTheTests0000000000';
const open = {
  id: 'chs_1', order_id: 'o', amount: 5_000_000_000, currency: 'XAF', status: 'open', paid: false, payment_ref: '4175020683362214',
  checkout_url: 'https://pay.example/c/chs_1', embed_checkout_url: null, mode: 'hosted', client_secret: null, expires_at: '2026-11-22T10:15:00Z',
};
const problem = (status, code, detail, errors = []) => ({ type: `/docs/errors/${code}`, title: 'Title', status, detail, code, message: detail, request_id: 'r-1', errors });
const busy = problem(503, 'generic.unavailable', 'Send it again.');
const ended = problem(409, 'checkout.session_ended', 'The session has ended.');

const hangsUp = (res) => res.socket.destroy();
const says = (status, body, headers = {}) => (res) => res.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));

// A service that gives the answers of a list, one for each request.
async function service(t, ...answers) {
  const requests = [];
  const server = createServer(async (req, res) => {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    requests.push({ method: req.method, url: req.url, headers: req.headers, body: Buffer.concat(chunks).toString() });
    (answers.shift() ?? says(418, ''))(res);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close().closeAllConnections());
  const url = `http://127.0.0.1:${server.address().port}`;
  return { requests, url, client: new Quittance({ url, key, longestWait: 2000 }) };
}

test('a creation is repeated with its key', async (t) => {
  const { requests, client } = await service(t, hangsUp, says(502, '<html>'), says(503, busy, { 'Retry-After': '1' }), says(201, open));
  const begun = Date.now();
  assert.deepEqual(await client.createSession({ order_id: 'o', amount: 5_000_000_000 }), open);
  assert.ok(Date.now() - begun >= 1000, 'Retry-After is honoured');
  assert.equal(requests.length, 4);
  assert.equal(new Set(requests.map((r) => r.headers['idempotency-key'])).size, 1);
  for (const r of requests) {
    assert.equal(r.body, '{"order_id":"o","amount":5000000000}');
    assert.equal(r.headers.authorization, `Bearer ${key}`);
    assert.ok(r.headers['idempotency-key']);
  }
  const given = await service(t, says(201, open));
  await given.client.createSession({ order_id: 'o', amount: 1 }, { idempotencyKey: 'mine' });
  assert.equal(given.requests[0].headers['idempotency-key'], 'mine');
});

test('a refusal is thrown at once, with all that it says and without the key', async (t) => {
  const { requests, client } = await service(t, says(422, problem(422, 'generic.validation_failed', 'Two faults.', [
    { field: 'amount', rule: 'range', message: 'amount must be positive.' }, { field: 'order_id', rule: 'length', message: 'order_id is too long.' },
  ])));
  await assert.rejects(client.createSession({ order_id: '', amount: 0 }), (err) => {
    assert.ok(err instanceof ProblemError);
    assert.equal(err.status, 422);
    assert.equal(err.code, 'generic.validation_failed');
    assert.equal(err.problem.errors.length, 2);
    assert.equal(err.message, '422 generic.validation_failed: Two faults. amount must be positive. order_id is too long. (request r-1)');
    return true;
  });
  assert.equal(requests.length, 1);

  for (const status of [404, 302, 500]) {
    const proxy = await service(t, says(status, '<html>', { Location: '/elsewhere' }));
    await assert.rejects(proxy.client.getSession('chs_1'), { name: 'ProblemError', status, code: undefined });
    assert.equal(proxy.requests.length, 1);
  }
  const silent = await service(t, hangsUp, hangsUp, hangsUp, hangsUp);
  await assert.rejects(silent.client.getSession('chs_1'), (err) => err instanceof QuittanceError && !JSON.stringify([err.message, String(err.cause)]).includes(key));
  assert.equal(silent.requests.length, 4);
});

test('the client does not wait longer than it is told', async (t) => {
  const { requests, client } = await service(t, says(503, busy, { 'Retry-After': '60' }));
  await assert.rejects(client.getSession('chs_1'), { code: 'generic.unavailable' });
  assert.equal(requests.length, 1);
  const caller = new AbortController();
  const waiting = await service(t, (res) => {
    says(503, busy, { 'Retry-After': '2' })(res);
    setTimeout(() => caller.abort(), 50);
  });
  await assert.rejects(waiting.client.getSession('chs_1', { signal: caller.signal }), { name: 'AbortError' });
  assert.equal(waiting.requests.length, 1);
});

// A page of an agency waits for a call.
test('a call ends with its budget, and one beyond the quota of creations at once', async (t) => {
  const limited = await service(t, says(429, problem(429, 'generic.rate_limited', 'Later.'), { 'Retry-After': '1' }));
  await assert.rejects(limited.client.createSession({ order_id: 'o', amount: 1 }), { status: 429 });
  assert.equal(limited.requests.length, 1);

  const asking = await service(t, says(503, busy, { 'Retry-After': '11' }));
  await assert.rejects(new Quittance({ url: asking.url, key }).getSession('chs_1'), { code: 'generic.unavailable' });
  assert.equal(asking.requests.length, 1);

  const silent = await service(t, says(503, busy, { 'Retry-After': '1' }), () => {});
  const begun = Date.now();
  await assert.rejects(new Quittance({ url: silent.url, key, budget: 5000 }).getSession('chs_1'), { name: 'QuittanceError', message: /^no answer/ });
  assert.equal(silent.requests.length, 2);
  assert.ok(Date.now() - begun < 20_000);
});

test('a cancellation whose answer is lost', async (t) => {
  const cancelled = { ...open, status: 'cancelled' };
  const lost = await service(t, hangsUp, says(409, ended), says(200, cancelled));
  assert.deepEqual(await lost.client.cancelSession('chs_1'), cancelled);
  const completed = await service(t, hangsUp, says(409, ended), says(200, { ...open, status: 'completed' }));
  await assert.rejects(completed.client.cancelSession('chs_1'), { code: 'checkout.session_ended' });
  const first = await service(t, says(409, ended));
  await assert.rejects(first.client.cancelSession('chs_1'), { code: 'checkout.session_ended' });
  assert.equal(first.requests.length, 1);
});

// A session that moves to the next page while the list is read comes once.
test('all pages', async (t) => {
  const list = (...ids) => says(200, { items: ids.map((id) => ({ ...open, id })), page: 1, page_size: 2, total: 4 });
  const { requests, client } = await service(t, list('chs_4', 'chs_3'), list('chs_3', 'chs_2'), list('chs_1'));
  const ids = [];
  for await (const session of client.allSessions({ status: 'completed', completed_from: '2026-11-21T00:00:00+01:00', page_size: 2 })) ids.push(session.id);
  assert.deepEqual(ids, ['chs_4', 'chs_3', 'chs_2', 'chs_1']);
  assert.equal(requests[2].url, '/api/v1/checkout/sessions?status=completed&completed_from=2026-11-21T00%3A00%3A00%2B01%3A00&page_size=2&page=3');
  const refused = await service(t, list('chs_4', 'chs_3'), says(403, problem(403, 'generic.forbidden', 'Forbidden.')));
  const read = async () => {
    for await (const session of refused.client.allSessions({ page_size: 2 })) ids.push(session.id);
  };
  await assert.rejects(read(), { code: 'generic.forbidden' });
  assert.equal(ids.length, 6);
});

test('events', async (t) => {
  const event = { event_id: 'evt_1', event: 'checkout.completed', created_at: '2026-11-21T10:18:00.412Z', deliveries: [] };
  const { requests, client } = await service(t, says(200, { items: [event] }), says(202, event));
  assert.deepEqual(await client.listEvents('chs_1'), { items: [event] });
  assert.deepEqual(await client.redeliver('chs_1', 'evt_1'), event);
  assert.deepEqual(requests.map((r) => `${r.method} ${r.url} ${r.body}`), [
    'GET /api/v1/checkout/sessions/chs_1/events ', 'POST /api/v1/checkout/sessions/chs_1/events/evt_1/redeliver ',
  ]);
});

test('requests', async (t) => {
  const page = { items: [open], page: 2, page_size: 1, total: 7 };
  const { requests, client } = await service(t, says(200, page), says(200, open), says(200, { session_id: 'chs_1', paid: true }), says(200, page));
  assert.deepEqual(await client.listSessions({ order_id: 'a&b=c', status: 'open', page: 2, page_size: undefined }), page);
  await client.getSession('../x?y');
  assert.equal((await client.verifyCompletion({ completion_token: 'cpt_1', order_id: 'o' })).paid, true);
  await client.listSessions();
  assert.deepEqual(requests.map((r) => `${r.method} ${r.url} ${r.body}`), [
    'GET /api/v1/checkout/sessions?order_id=a%26b%3Dc&status=open&page=2 ',
    'GET /api/v1/checkout/sessions/..%2Fx%3Fy ',
    'POST /api/v1/checkout/sessions/verify-completion {"completion_token":"cpt_1","order_id":"o"}',
    'GET /api/v1/checkout/sessions ',
  ]);
});

test('papers', async (t) => {
  const pdf = Buffer.from('%PDF-1.7\n\xff', 'latin1');
  const file = (res) => res.writeHead(200, { 'Content-Type': 'application/pdf' }).end(pdf);
  const receipts = { items: [{ transaction_id: 'x', notice_ref: 'AV1', token: 'a.b.c', url: 'https://pay.example/q#a.b.c' }] };
  const { requests, client } = await service(t, says(503, busy, { 'Retry-After': '1' }), file, file, says(200, receipts), says(200, '{}', { 'Content-Type': 'application/json' }), says(409, ended));
  assert.deepEqual(Buffer.from(await client.getNotice('chs_1')), pdf);
  assert.deepEqual(Buffer.from(await client.getReceiptPDF('chs_1', { transactionId: 'x', lang: 'en' })), pdf);
  assert.deepEqual(await client.getReceipts('chs_1'), receipts);
  await assert.rejects(client.getNotice('chs_1'), { name: 'QuittanceError', message: /not of this API/ });
  await assert.rejects(client.getReceiptPDF('chs_1'), { code: 'checkout.session_ended' });
  const at = '/api/v1/checkout/sessions/chs_1/';
  assert.deepEqual(requests.map((r) => `${r.url} ${r.headers.accept.split(',')[0]}`), [
    `${at}notice application/pdf`, `${at}notice application/pdf`, `${at}receipt?lang=en&transaction_id=x application/pdf`, `${at}receipt application/json`,
    `${at}notice application/pdf`, `${at}receipt application/pdf`,
  ]);
});

test('configuration', () => {
  for (const [config, message] of [
    [undefined, /^url must be an address/],
    [{ url: 'pay.example', key }, /^url must be an address/],
    [{ url: 'https://pay.example/api/v1', key }, /^url must have no path/],
    [{ url: 'http://pay.example', key }, /^url must use https/],
    [{ url: 'https://pay.example', key: 'whsec_x' }, /^key must begin/],
    [{ url: 'https://pay.example', key: `${key}\n` }, /no white space/],
    [{ url: 'https://pay.example', key, attempts: 0 }, /^attempts must be/],
    [{ url: 'https://pay.example', key, budget: 0 }, /^budget must be/],
  ]) {
    assert.throws(() => new Quittance(config), { name: 'QuittanceError', message });
  }
  for (const url of ['https://pay.example/', 'http://127.0.0.1:8080', 'http://[::1]:8080', 'http://localhost:8080']) new Quittance({ url, key });
});
