// Types of the Quittance browser SDK. The script defines the global `Quittance`;
// this file describes it and holds no code.

declare namespace Quittance {
  /** The version of the script, such as "1.0.0". */
  const version: string;

  /**
   * Prepares a checkout. Rejects, with the mend in the text, when the page is not
   * served over https, when the client secret is missing or malformed, or is an
   * `sk_` key, which must never reach a browser.
   */
  function initEmbeddedCheckout(options: Options): Promise<Checkout>;

  interface Checkout {
    /**
     * Shows the checkout in an element, or in the first one that a selector
     * finds. Throws when there is none, when the checkout is mounted already or
     * destroyed, and when the element holds another checkout.
     */
    mount(target: string | Element): void;
    /** Takes the checkout off the page. It may be mounted again. */
    unmount(): void;
    /** Takes it off and forgets the client secret. */
    destroy(): void;
  }

  type Options = Secret & Callbacks & {
    /** Width and height of the frame; by the width of the window when left out. */
    layout?: Layout;
    /** The language of the page (`<html lang>`) when left out. */
    locale?: "fr" | "en";
    /** "auto": the frame grows and shrinks with its content. */
    resize?: "auto";
    /**
     * Where the checkout is, such as "https://pay.example": the origin that the
     * script came from when left out. For sites that serve the script themselves.
     */
    checkoutOrigin?: string;
  };

  /** "{session_id}:{client_secret}", or a function that asks your back end for it. */
  type Secret =
    | { clientSecret: string; fetchClientSecret?: undefined }
    | { fetchClientSecret: () => string | Promise<string>; clientSecret?: undefined };

  interface Callbacks {
    /** The checkout can be seen and used. */
    onReady?(event: { layout: Layout }): void;
    /**
     * The citizen has paid, says the browser. Nothing is proved yet: give the
     * token to your back end, which calls verify-completion with its key within
     * ten minutes. Called once.
     */
    onComplete?(event: { completion_token: string }): void;
    /**
     * A card payment is under way elsewhere. The element that the checkout is
     * mounted in gets the DOM event `quittance:checkout.pending`, which bubbles.
     */
    onPending?(event: { reason: string }): void;
    /** The session is over, unpaid: offer a new one. Called once. */
    onSessionEnd?(): void;
    /**
     * Something is wrong; see `code`. After `network` the checkout may still
     * become ready.
     */
    onError?(event: CheckoutError): void;
    /** The citizen wants to leave the checkout: unmount it. */
    onClose?(): void;
    /** The checkout is not ready after eight seconds. */
    onSlow?(): void;
  }

  interface CheckoutError {
    /**
     * `origin_rejected`: the service answers, but its page may not be framed here:
     * the origin of this page is not among the application's embed origins, this
     * page's own Content-Security-Policy forbids the frame, or there is no such
     * session. When the origin is not registered, it is reported at once, with
     * `origin`, and the frame is removed. `network`: not ready after twenty seconds. `reloaded`: the frame
     * was reloaded too often. `outdated`: the script is too old for the service.
     * Others come from the page, such as `session_not_found`.
     */
    code: "origin_rejected" | "network" | "reloaded" | "outdated" | (string & {});
    /** Whether trying again can help. */
    retryable: boolean;
    /** A reference for support, when there is one. */
    ref?: string;
    /** The origin of this page, when it is not registered. */
    origin?: string;
  }

  /** compact is 400 × 620 pixels, large 760 × 560; both shrink with the page. */
  type Layout = "compact" | "large";
}

interface Window {
  readonly Quittance: typeof Quittance;
}

interface HTMLElementEventMap {
  "quittance:checkout.pending": CustomEvent<{ reason: string }>;
}
