// A program with the client of @hey-api/openapi-ts; see clients_test.go.
import { createSession, getSession, type Event, type FailureCode, type SessionCreate } from "./client";
import { client } from "./client/client.gen";
import { env, line } from "./event";

client.setConfig({ baseUrl: env["QUITTANCE_URL"]!, auth: env["QUITTANCE_KEY"]! });
const body: SessionCreate = { order_id: env["QUITTANCE_ORDER"]!, amount: 5_000_000_000 };
const create = () => createSession({ headers: { "Idempotency-Key": crypto.randomUUID() }, body });

const created = await create();
const read = await getSession({ path: { id: created.data!.id } });
const session = read.data!;
console.log(session.id, session.status, session.amount, session.mode);
const refused = await create();
console.log(refused.response!.status, refused.error!.code);

for (const text of env["QUITTANCE_EVENTS"]!.split("\n")) {
  const event = JSON.parse(text) as Event;
  if (event.event === "checkout.failed") {
    const code: FailureCode = event.failure_code;
    // @ts-expect-error a failure has no payment
    void [code, event.total_amount];
  }
  console.log(line(event));
}
