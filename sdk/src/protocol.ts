// The messages between the frame and the SDK (docs/design/decisions.md § 13).

export const NS = "quittance.checkout";
export const V = 1;

/** The form of every message, on the window and on the port. */
export interface Envelope {
  ns: typeof NS;
  v: number;
  /** 128 random bits in hex that the SDK chose for this connection; empty in hello. */
  cid: string;
  /** Increases with each message of a sender; a repeated message has the same number. */
  seq: number;
  type: string;
  data?: Record<string, unknown>;
}

export const envelope = (cid: string, seq: number, type: string, data?: Record<string, unknown>): Envelope =>
  ({ ns: NS, v: V, cid, seq, type, data });

/** Returns data if it is a message of this protocol. */
export const read = (data: any): Envelope | undefined =>
  data && data.ns === NS && data.v === V ? data : undefined;
