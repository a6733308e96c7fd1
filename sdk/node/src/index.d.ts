import type { components, operations } from './schema.js';

type Schemas = components['schemas'];

export type SessionCreate = Schemas['SessionCreate'];
export type Session = Schemas['Session'];
export type SessionPage = Schemas['SessionPage'];
export type SessionStatus = Schemas['SessionStatus'];
export type SessionFilter = NonNullable<operations['listSessions']['parameters']['query']>;
export type SessionEvents = Schemas['SessionEvents'];
export type SessionEvent = Schemas['SessionEvent'];
export type EventDelivery = Schemas['EventDelivery'];
export type CompletionVerify = Schemas['CompletionVerify'];
export type Completion = Schemas['Completion'];
export type Receipts = Schemas['Receipts'];
export type Receipt = Schemas['Receipt'];
export type Problem = Schemas['Problem'];
export type ProblemCode = Schemas['ProblemCode'];
export type FailureCode = Schemas['FailureCode'];
/** A webhook; `event` tells the kinds apart. Ignore an event of a kind that you do not know. */
export type Event = Schemas['Event'];
export type CompletedEvent = Schemas['CompletedEvent'];
export type FailedEvent = Schemas['FailedEvent'];
export type CancelledEvent = Schemas['CancelledEvent'];
export type ExpiredEvent = Schemas['ExpiredEvent'];
export type LatePaymentEvent = Schemas['LatePaymentEvent'];
export type ReversedEvent = Schemas['ReversedEvent'];
export type PartiallyReversedEvent = Schemas['PartiallyReversedEvent'];
/** A webhook about a disbursement batch. Only an endpoint that names these events gets them. */
export type DisbursementEvent = Schemas['DisbursementEvent'];
export type DisbursementCompletedEvent = Schemas['DisbursementCompletedEvent'];
export type DisbursementLineRefusedEvent = Schemas['DisbursementLineRefusedEvent'];
export type DisbursementLineReturnedEvent = Schemas['DisbursementLineReturnedEvent'];
export type DisbursementHeldEvent = Schemas['DisbursementHeldEvent'];

export interface Config {
  /** The service's address without a path, such as `https://pay.example`. http is accepted for this machine only. */
  url: string;
  /** `sk_test_…` or `sk_live_…`. */
  key: string;
  fetch?: typeof fetch;
  /** How often a call is sent at most. The default is 4. */
  attempts?: number;
  /**
   * The longest that a call takes in milliseconds, with all its attempts and the waits between them. The default is ten
   * seconds, because a call is often part of a request that a browser waits for.
   */
  budget?: number;
  /** The longest wait between two attempts in milliseconds. An answer that asks for a longer one ends the call. The default is the budget. */
  longestWait?: number;
  /** Milliseconds that one attempt may take. The default is 30 seconds, or what is left of the budget. */
  timeout?: number;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /**
   * Without it the client makes one, which makes the repetitions within the call safe. A program that repeats the call
   * itself, for instance after a restart, passes a key that it stored before the first call.
   */
  idempotencyKey?: string;
}

export interface PaperOptions extends CallOptions {
  /** The language of the paper; French if absent. */
  lang?: components['parameters']['PaperLanguage'];
}

export interface ReceiptOptions extends PaperOptions {
  /** The due whose receipt is asked for. Required if the session has several. */
  transactionId?: string;
}

/** The client. A call is repeated when no answer came, or one that asks for it (429, 502, 503, 504). */
export class Quittance {
  constructor(config: Config);
  createSession(session: SessionCreate, options?: CreateOptions): Promise<Session>;
  getSession(id: string, options?: CallOptions): Promise<Session>;
  listSessions(filter?: SessionFilter, options?: CallOptions): Promise<SessionPage>;
  /**
   * The sessions of all pages from `page` on, the newest first; each page is asked for when the one before is used up. A
   * session that is created meanwhile may be missing, and one whose change moves it out of the filter may take another's
   * place: read by `order_id`, or by `completed_from` and `completed_to` in the past, to miss none.
   */
  allSessions(filter?: SessionFilter, options?: CallOptions): AsyncGenerator<Session, void, undefined>;
  /** The events of a session of which your back end is told, the oldest first, and what became of each at your endpoints. */
  listEvents(id: string, options?: CallOptions): Promise<SessionEvents>;
  /**
   * Sends an event once more to your endpoints, with the same id and the same body. If the answer of an attempt was lost,
   * the event may be sent twice. At most ten events a minute are sent.
   */
  redeliver(id: string, eventId: string, options?: CallOptions): Promise<SessionEvent>;
  /**
   * Cancels an open session. If the answer of an attempt was lost and the session is cancelled at the next one, that is a
   * success.
   */
  cancelSession(id: string, options?: CallOptions): Promise<Session>;
  /** Name `order_id`, the order of the visitor's case: the token comes from the visitor's browser. */
  verifyCompletion(verification: CompletionVerify, options?: CallOptions): Promise<Completion>;
  /** The payment notice of an open hosted session, as PDF/A-2b. Ask for it again instead of keeping it: fees may change. */
  getNotice(id: string, options?: PaperOptions): Promise<Uint8Array>;
  /** The signed tokens of the receipts of a completed session, one for each due. */
  getReceipts(id: string, options?: CallOptions): Promise<Receipts>;
  /** The receipt of a due as PDF/A-2b. The same payment in the same state has the same bytes. */
  getReceiptPDF(id: string, options?: ReceiptOptions): Promise<Uint8Array>;
}

/** Verifies webhooks (Standard Webhooks 1.0). */
export class Receiver {
  /** The secrets of the endpoint, `whsec_…`; two while one is rotated. */
  constructor(...secrets: [string, ...string[]]);
  /**
   * Verifies a webhook and returns it. An endpoint that names events of disbursement batches says so:
   * `verify<Event | DisbursementEvent>(…)`.
   * @param headers of Node's `request.headers`, or of a `Request`
   * @param body as it arrived, byte for byte
   * @throws {SignatureError} The service did not sign it: answer 400 and do nothing.
   */
  verify<E extends Event | DisbursementEvent = Event>(headers: Headers | Record<string, string | string[] | undefined>, body: string | Uint8Array): E;
}

/** The base of all errors of this package. None contains the key. */
export class QuittanceError extends Error {}

/** An answer that refuses. */
export class ProblemError extends QuittanceError {
  readonly status: number;
  /** Undefined when the answer is not of the API, but of a proxy. */
  readonly code: ProblemCode | undefined;
  readonly problem: Pick<Problem, 'title' | 'detail' | 'errors'> & Partial<Problem>;
}

/** The service did not sign the webhook. */
export class SignatureError extends QuittanceError {}
