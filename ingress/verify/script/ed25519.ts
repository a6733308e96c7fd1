// Ed25519 for browsers whose WebCrypto lacks it: @noble/ed25519 3.2.0 (MIT, noble/LICENSE), which
// the project takes as it is: small, audited and without dependencies.
// @ts-ignore: plain JavaScript
import { verifyAsync } from './noble/ed25519.js';

// verify follows RFC 8032, as WebCrypto and the service do.
export const verify = (signature: Uint8Array, message: Uint8Array, key: Uint8Array): Promise<boolean> => verifyAsync(signature, message, key, { zip215: false });
