// Code that the types must accept, and code that they must refuse. It is compiled and
// never run.
import { ProblemError, Quittance, Receiver, SignatureError, type DisbursementEvent, type Event, type FailureCode } from '@quittance/node';

export async function right(): Promise<string> {
  const client = new Quittance({ url: 'https://pay.example', key: 'sk_test_x' });
  const session = await client.createSession({ order_id: 'o', amount: 5000 });
  await client.createSession({ order_id: 'o', amount: 5000, currency: 'EUR', mode: null, metadata: { case: '4' } }, { idempotencyKey: 'k' });
  await client.listSessions({ order_id: 'o', page: 2 });
  for await (const paid of client.allSessions({ completed_from: '2026-11-21T00:00:00Z' })) {
    const [event] = (await client.listEvents(paid.id)).items;
    if (event?.deliveries.some((delivery) => delivery.state === 'exhausted')) await client.redeliver(paid.id, event.event_id);
  }
  const paper: Uint8Array = await client.getNotice(session.id, { lang: 'en' });
  const [first] = (await client.getReceipts(session.id)).items;
  if (first && paper.length > 0) await client.getReceiptPDF(session.id, { transactionId: first.transaction_id });
  try {
    await client.cancelSession(session.id);
  } catch (err) {
    if (err instanceof ProblemError && err.code === 'checkout.session_ended') return err.problem.detail;
  }
  return session.checkout_url;
}

export function receive(headers: Headers, body: Uint8Array): string | number | FailureCode {
  try {
    const event = new Receiver('whsec_x', 'whsec_y').verify(headers, body);
    switch (event.event) {
      case 'checkout.completed':
      case 'checkout.late_payment':
        return event.total_amount;
      case 'checkout.failed':
        return event.failure_code;
      case 'checkout.cancelled':
      case 'checkout.expired':
        return event.status;
      case 'checkout.partially_reversed':
        return event.reversed_amount;
      case 'checkout.reversed':
        return event.items.map((item) => item.amount).join();
    }
  } catch (err) {
    return err instanceof SignatureError ? 400 : 500;
  }
}

export function receiveBatches(headers: Headers, body: Uint8Array): string | number | null {
  const event = new Receiver('whsec_x').verify<Event | DisbursementEvent>(headers, body);
  switch (event.event) {
    case 'disbursement.completed':
      return event.counts.paid;
    case 'disbursement.line_refused':
    case 'disbursement.line_returned':
    case 'disbursement.line_return_withdrawn':
      return event.code ?? event.line_ref;
    case 'disbursement.held':
      return event.batch;
    default:
      return event.session_id;
  }
}

export async function wrong(client: Quittance): Promise<void> {
  // @ts-expect-error no amount
  await client.createSession({ order_id: 'o' });
  // @ts-expect-error a misspelt field
  await client.createSession({ oder_id: 'o', order_id: 'o', amount: 1 });
  // @ts-expect-error no such currency
  await client.createSession({ order_id: 'o', amount: 1, currency: 'XXX' });
  // @ts-expect-error no secret
  new Receiver();
  // @ts-expect-error a body that was decoded
  const event = new Receiver('whsec_x').verify({}, { event: 'checkout.completed' });
  // @ts-expect-error not every event has a payment
  void event.total_amount;
  // @ts-expect-error no batches, as the endpoint does not say that it names their events
  void event.batch;
}
