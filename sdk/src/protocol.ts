// What the frame and the SDK say to each other (contract-decisions § 13).

export const NS = "quittance.checkout";
export const V = 1;

/** Every message, on the window as on the port. */
export interface Envelope {
  ns: typeof NS;
  v: number;
  /** 128 random bits in hex that the SDK chose for this connection; none in hello. */
  cid: string;
  /** Grows with each message of a sender; a repeated message keeps its own. */
  seq: number;
  type: string;
  data?: Record<string, unknown>;
}

export const envelope = (cid: string, seq: number, type: string, data?: Record<string, unknown>): Envelope =>
  ({ ns: NS, v: V, cid, seq, type, data });

/** What came, if it is a message of ours. */
export const read = (data: any): Envelope | undefined =>
  data && data.ns === NS && data.v === V ? data : undefined;
