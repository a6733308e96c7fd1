// Sends the messages of the checkout page in a frame to the SDK around it. The page
// gives them as the DOM event "quittance:say". Only the messages in `allowed` are sent, so
// that a fault of the page cannot tell the host page what it must learn from its own back
// end.
import { envelope, read, type Envelope } from "./protocol";

type Check = (value: any) => unknown;

// Only words, so that amounts and ids do not match, and no word for an outcome.
const word: Check = (s) => /^(?!.*(paid|status|order))[a-z._]{1,40}$/.test(s);
// The id of a request. Ids of sessions and numbers do not match.
const reference: Check = (s) => /^(?!chs_)(?=.*[a-z-])[\w-]{1,64}$/.test(s);

// Types and fields that are not listed here are never sent.
const allowed: Record<string, Record<string, Check>> = {
  ready: {},
  resize: { height: (n) => n > 0 && n < 1e4 },
  pending: { reason: word },
  complete: { completion_token: (s) => /^cpt_\w+$/.test(s) },
  ended: {},
  closed: {},
  error: { code: word, retryable: (b) => b === !!b, ref: reference },
};

const html = document.documentElement;
const host = html.dataset.parent;

// Remove the secret from the address before other scripts can read it there.
const query = new URLSearchParams(location.search);
Object.defineProperty(window, "quittanceSecret", { value: query.get("client_secret") });
query.delete("client_secret");
history.replaceState(history.state, "", location.pathname + "?" + query);

let port: MessagePort | undefined;
let cid = "";
let seq = 0;
let queue: Array<() => void> = [];
let again: number | undefined; // timer that repeats `complete` until it is acknowledged

const say = (type: string, said: any): void => {
  const fields = allowed.hasOwnProperty(type) && allowed[type];
  if (!fields) return;
  let data: Record<string, unknown> | undefined;
  for (const name in fields) {
    const value = said && said[name];
    if (value == null) continue;
    if (Object(value) === value || !fields[name](value)) return;
    (data = data || {})[name] = value;
  }
  const send = () => {
    const message = envelope(cid, ++seq, type, data);
    port!.postMessage(message);
    if (type === "complete" && !again) again = setInterval(() => port!.postMessage(message), 1e3);
  };
  port ? send() : queue.push(send);
};

document.addEventListener("quittance:say", ((event: CustomEvent) => {
  const { type, data } = event.detail;
  // This script measures the height itself, and sends it only to an SDK that asks for it.
  if (type !== "resize") say(type, data);
}) as EventListener);

if (host && parent !== window) {
  addEventListener("message", (event) => {
    const message = read(event.data);
    if (port || event.source !== parent || event.origin !== host || !message || message.type !== "connect" ||
      !/^[0-9a-f]{32}$/.test(message.cid) || !event.ports[0]) return;
    port = event.ports[0];
    cid = message.cid;
    port.onmessage = ({ data }: { data: Envelope }) => {
      const heard = read(data);
      if (heard && heard.cid === cid && heard.type === "ack") clearInterval(again);
    };
    queue.forEach((send) => send());
    queue = [];
    if (message.data && message.data.resize === "auto" && window.ResizeObserver) {
      new ResizeObserver(() => say("resize", { height: Math.ceil(html.getBoundingClientRect().height) })).observe(html);
    }
  });
  parent.postMessage(envelope("", 0, "hello", { versions: [1], need: html.dataset.need }), host);
}
