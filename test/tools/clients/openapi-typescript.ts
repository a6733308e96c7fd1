// A program with the types of openapi-typescript and its client, openapi-fetch; see
// clients_test.go.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";
import { env, line } from "./event";

const client = createClient<paths>({ baseUrl: env["QUITTANCE_URL"]!, headers: { Authorization: `Bearer ${env["QUITTANCE_KEY"]}` } });
const body: components["schemas"]["SessionCreate"] = { order_id: env["QUITTANCE_ORDER"]!, amount: 5_000_000_000 };
const create = () => client.POST("/api/v1/checkout/sessions", { params: { header: { "Idempotency-Key": crypto.randomUUID() } }, body });

const created = await create();
const read = await client.GET("/api/v1/checkout/sessions/{id}", { params: { path: { id: created.data!.id } } });
const session = read.data!;
console.log(session.id, session.status, session.amount, session.mode);
const refused = await create();
console.log(refused.response.status, refused.error!.code);

for (const text of env["QUITTANCE_EVENTS"]!.split("\n")) {
  const event = JSON.parse(text) as components["schemas"]["Event"];
  if (event.event === "checkout.failed") {
    const code: components["schemas"]["FailureCode"] = event.failure_code;
    // @ts-expect-error a failure has no payment
    void [code, event.total_amount];
  }
  console.log(line(event));
}
