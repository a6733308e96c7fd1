// The whole way on a running service: QUITTANCE_URL and QUITTANCE_KEY name it and a test key
// of it. The key's application sends checkout.cancelled to port QUITTANCE_WEBHOOK_PORT of this
// machine, signed with QUITTANCE_WEBHOOK_SECRET.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { Quittance, Receiver } from '@quittance/node';

const { QUITTANCE_URL: url, QUITTANCE_KEY: key, QUITTANCE_WEBHOOK_PORT: port, QUITTANCE_WEBHOOK_SECRET: secret } = process.env;

test('a running service', { skip: url ? false : 'QUITTANCE_URL names no running service; `make test/clients` starts one', timeout: 120_000 }, async (t) => {
  const order = `sdk-node-${randomUUID()}`;
  const receiver = new Receiver(secret);
  const cancelled = new Promise((resolve, reject) => {
    const server = createServer(async (req, res) => {
      const chunks = [];
      for await (const chunk of req) chunks.push(chunk);
      try {
        const event = receiver.verify(req.headers, Buffer.concat(chunks));
        res.writeHead(204).end();
        if (event.order_id === order) resolve(event);
      } catch (err) {
        res.writeHead(400).end();
        reject(err);
      }
    });
    server.listen(Number(port), '127.0.0.1');
    t.after(() => server.close().closeAllConnections());
  });

  let lose = true;
  const client = new Quittance({
    url, key,
    async fetch(...args) {
      const answer = await fetch(...args);
      if (!lose) return answer;
      lose = false;
      throw new TypeError('the answer is lost');
    },
  });
  const body = { order_id: order, amount: 5_000_000_000, metadata: { case: '4' }, customer: { name: 'A. Contribuable' } };

  const session = await client.createSession(body); // its first answer is lost
  assert.equal(lose, false);
  assert.deepEqual([session.order_id, session.amount, session.status, session.mode], [order, 5_000_000_000, 'open', 'hosted']);
  assert.deepEqual(await client.listSessions({ order_id: order }), { items: [session], page: 1, page_size: 20, total: 1 });
  assert.deepEqual(await client.getSession(session.id), session);

  await assert.rejects(client.createSession(body), { code: 'checkout.order_open', status: 409 });
  await assert.rejects(client.createSession({ order_id: 'x'.repeat(201), amount: 0 }), (err) => err.problem.errors.length === 2);
  await assert.rejects(client.getSession('chs_unknown'), { code: 'checkout.session_not_found' });
  await assert.rejects(client.verifyCompletion({ completion_token: 'cpt_unknown', order_id: order }), { code: 'checkout.completion_token_not_found' });

  const notice = Buffer.from(await client.getNotice(session.id, { lang: 'en' }));
  assert.equal(notice.subarray(0, 5).toString(), '%PDF-');
  await assert.rejects(client.getReceiptPDF(session.id), { code: 'checkout.not_completed' });
  await assert.rejects(client.getReceipts(session.id), { code: 'checkout.not_completed' });

  lose = true;
  assert.equal((await client.cancelSession(session.id)).status, 'cancelled'); // its first answer is lost
  await assert.rejects(client.cancelSession(session.id), { code: 'checkout.session_ended' });

  const event = await cancelled;
  const [told] = (await client.listEvents(session.id)).items;
  assert.equal(told.event_id, event.event_id);
  assert.equal((await client.redeliver(session.id, event.event_id)).event_id, event.event_id);
  assert.deepEqual([event.event, event.session_id, event.amount, event.status, event.metadata], ['checkout.cancelled', session.id, 5_000_000_000, 'cancelled', { case: '4' }]);
});
