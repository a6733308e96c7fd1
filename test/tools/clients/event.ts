// What both TypeScript programs do with an event. The compiler checks that each event has
// the fields of its kind and that no kind is missing.
interface Common { session_id: string; amount: number; status: string }
type Event =
  | (Common & { event: "checkout.completed" | "checkout.late_payment"; total_amount: number })
  | (Common & { event: "checkout.failed"; failure_code: string })
  | (Common & { event: "checkout.cancelled" | "checkout.expired" })
  | (Common & { event: "checkout.partially_reversed"; reversed_amount: number })
  | (Common & { event: "checkout.reversed"; items: { amount: number }[] });

export const env = (globalThis as unknown as { process: { env: Record<string, string> } }).process.env;

export function line(event: Event): string {
  return [event.event, event.session_id, event.amount, detail(event)].join(" ");
}

function detail(event: Event): string | number {
  switch (event.event) {
    case "checkout.completed":
    case "checkout.late_payment":
      return event.total_amount;
    case "checkout.failed":
      return event.failure_code;
    case "checkout.cancelled":
    case "checkout.expired":
      return event.status;
    case "checkout.partially_reversed":
      return event.reversed_amount;
    case "checkout.reversed":
      return event.items[0]!.amount;
  }
}
