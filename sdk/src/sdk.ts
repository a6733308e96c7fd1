/// <reference path="../types/quittance.d.ts" />
// The browser SDK puts the checkout in a frame and tells the page what the citizen sees.
// It never learns the outcome of the payment.
import { envelope, read, V } from "./protocol";

/** Set by the build. */
declare const VERSION: string;

const sizes: Record<string, [number, number]> = { compact: [400, 620], large: [760, 560] };
const large = 720;
const slowAfter = 8e3, lateAfter = 20e3;
const maxNavigations = 3;

// Modules, and scripts that another script adds, have no currentScript.
const script = document.currentScript as HTMLScriptElement | null;
const home = script && script.src;

const fault = (text: string) => new Error("Quittance: " + text);

const initEmbeddedCheckout = async (options = {} as Quittance.Options): Promise<Quittance.Checkout> => {
  if (location.protocol !== "https:") {
    throw fault("only https pages may hold a checkout. Serve this page over https, with a self-signed certificate on your own machine.");
  }
  const base = options.checkoutOrigin || home;
  if (!base) throw fault("where is the checkout? Load the script by a plain <script src>, or pass checkoutOrigin.");
  const { origin } = new URL(base);
  const layout = options.layout || (innerWidth < large ? "compact" : "large");
  if (!sizes[layout]) throw fault('layout must be "compact" or "large".');

  let secret = "" + (options.fetchClientSecret ? await options.fetchClientSecret() : options.clientSecret);
  if (/sk_(test|live)_/.test(secret)) {
    throw fault("this is an sk_ key, which must never reach a browser: replace it now. Create the session on your back end and pass its client secret.");
  }
  if (!/^chs_\w+:chs_secret_[\w-]+$/.test(secret)) {
    throw fault('clientSecret must be "{session_id}:{client_secret}", of a session created with mode "embedded".');
  }

  // Messages that the page gets only once, even if the frame is reloaded.
  const told: Record<string, boolean> = {};
  let unmount = () => {};
  let frame: HTMLIFrameElement | undefined;

  const mount = (target: string | Element) => {
    if (!secret) throw fault("this checkout is destroyed: call initEmbeddedCheckout again.");
    if (frame && frame.isConnected) throw fault("this checkout is mounted already: unmount it first.");
    const element = typeof target === "string" ? document.querySelector(target) : target;
    if (!element || !element.isConnected) throw fault(`there is no ${target} on this page: mount once it is there.`);
    if (element.querySelector("iframe[data-quittance]")) throw fault("this element holds another checkout: unmount that one first.");
    unmount();

    const locale = options.locale || (/^(fr|en)\b/.exec(document.documentElement.lang) || [])[0];
    const [width, height] = sizes[layout];
    const f = frame = document.createElement("iframe");
    f.dataset.quittance = "";
    f.title = locale === "en" ? "Payment" : "Paiement";
    f.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation");
    f.allow = "payment 'none'; camera 'none'; microphone 'none'; geolocation 'none'";
    f.style.cssText = `display:block;border:0;width:100%;max-width:${width}px;height:${height}px`;
    element.appendChild(f);

    let port: MessagePort | undefined;
    let navigations = 0;
    // settled: the page was told that the checkout is ready or has failed. Time-outs then
    // report nothing.
    let spoke = false, ready = false, settled = false, loaded = false, reached = false;

    // Not by src, so that the secret is neither in the document nor in the history.
    const navigate = () => {
      loaded = spoke = false;
      const [id, client_secret] = secret.split(":");
      const query = new URLSearchParams({ client_secret, parent_origin: location.origin, layout });
      if (locale) query.set("locale", locale);
      f.contentWindow!.location.replace(`${origin}/embed/${id}?${query}`);
    };

    const fail = (code: string, retryable: boolean, ref?: any, refused?: string) => {
      settled = true;
      if (options.onError) options.onError({ code, retryable, ref, origin: refused });
    };

    const heard = (type: string, data: any) => {
      if (type === "ready") {
        if (!ready && options.onReady) options.onReady({ layout });
        ready = settled = true;
      } else if (type === "resize") {
        if (options.resize === "auto" && data.height > 0) f.style.height = `${+data.height}px`;
      } else if (type === "pending") {
        const detail = { reason: data.reason };
        element.dispatchEvent(new CustomEvent("quittance:checkout.pending", { bubbles: true, detail }));
        if (options.onPending) options.onPending(detail);
      } else if (type === "complete" || type === "ended") {
        if (told[type]) return;
        told[type] = true;
        if (type === "ended") options.onSessionEnd && options.onSessionEnd();
        else if (options.onComplete) options.onComplete({ completion_token: data.completion_token });
      } else if (type === "closed") {
        if (options.onClose) options.onClose();
      } else if (type === "error") {
        fail(data.code, data.retryable, data.ref);
      }
    };

    const connect = () => {
      if (port) port.close();
      const channel = new MessageChannel();
      const p = port = channel.port1;
      const cid = Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => (b + 256).toString(16).slice(1)).join("");
      let last = 0, seq = 0;
      p.onmessage = (event) => {
        const message = read(event.data);
        if (!message || message.cid !== cid) return;
        if (message.type === "complete") p.postMessage(envelope(cid, ++seq, "ack", { seq: message.seq }));
        if (!(message.seq > last)) return; // a repeated message
        last = message.seq;
        heard(message.type, message.data || {});
      };
      f.contentWindow!.postMessage(envelope(cid, 0, "connect", { resize: options.resize }), origin, [channel.port2]);
    };

    const hello = (event: MessageEvent) => {
      const message = read(event.data);
      if (event.source !== f.contentWindow || event.origin !== origin || !message || message.type !== "hello") return;
      const { need, versions } = (message.data || {}) as any;
      spoke = true;
      if (need === "navigate") {
        if (++navigations > maxNavigations) fail("reloaded", true);
        else navigate();
      } else if ([].concat(versions).indexOf(V as never) < 0) {
        fail("outdated", false);
      } else {
        connect();
      }
    };

    // A refused frame and one that could not be loaded look the same to this script: an
    // error page of another origin. If the service answers another request, the frame is
    // loaded once more; if that fails too, it was refused.
    const slow = setTimeout(async () => {
      if (settled) return;
      if (options.onSlow) options.onSlow();
      reached = await fetch(origin + "/sdk/integrity.json", { cache: "no-store" }).then(() => true, () => false);
      if (reached && loaded && !spoke && frame === f) navigate();
    }, slowAfter);
    const late = setTimeout(() => {
      if (!settled) reached && loaded && !spoke ? fail("origin_rejected", false) : fail("network", true);
    }, lateAfter);

    // Browsers tell nobody why they show no frame. The service says at once whether this page may
    // have one. The id is in the body, since the page can read the addresses of its requests.
    fetch(origin + "/embed/origin", { method: "POST", body: secret.split(":")[0] }).then((answer) => {
      if (answer.status !== 403 || settled || frame !== f) return;
      console.error(`Quittance: ${location.origin} is not registered as an embed origin of this application: see ${origin}/docs/keys#origins`);
      unmount();
      fail("origin_rejected", false, undefined, location.origin);
    }, () => {});

    unmount = () => {
      clearTimeout(slow);
      clearTimeout(late);
      removeEventListener("message", hello);
      if (port) port.close();
      f.remove();
      frame = undefined;
      unmount = () => {};
    };
    addEventListener("message", hello);
    navigate();
    f.onload = () => {
      try {
        f.contentWindow!.location.href; // readable: this is still the initial blank page
      } catch {
        loaded = true;
      }
    };
  };

  return {
    mount,
    unmount: () => unmount(),
    destroy() {
      unmount();
      secret = "";
    },
  };
};

(window as { Quittance: typeof Quittance }).Quittance = { version: VERSION, initEmbeddedCheckout };
