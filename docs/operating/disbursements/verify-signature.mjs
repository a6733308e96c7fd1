// node verify-signature.mjs KEYS FILE SIGNATURE verifies the detached JWS of an exported file (RFC 7515, appendix F), and
// node verify-signature.mjs KEYS PAPER what the code of a certificate or a payment advice holds. KEYS is a file with the
// service's /.well-known/batches-jwks.json. It needs Node alone, and ends with 1 for what the service has not signed.
import { createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [keysFile, what, signatureFile] = process.argv.slice(2)
const keys = JSON.parse(readFileSync(keysFile, 'utf8')).keys

// signedBy returns the key that has signed. The header must be the only one that the service writes for the key.
function signedBy(head, payload, signature, typ) {
  const plain = Buffer.from(head, 'base64url').toString('utf8')
  const { kid } = JSON.parse(plain)
  const key = keys.find((k) => k.kid === kid)
  if (!key) throw new Error(`the key ${kid} is not in ${keysFile}`)
  if (plain !== `{"alg":"EdDSA","kid":"${kid}","typ":"${typ}"}`) throw new Error('another header than the service writes')
  const own = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key.x }, format: 'jwk' })
  if (!verify(null, Buffer.from(`${head}.${payload}`), own, Buffer.from(signature, 'base64url'))) throw new Error('the signature is not valid')
  return key
}

try {
  if (signatureFile) {
    const [head, none, signature] = readFileSync(signatureFile, 'utf8').trim().split('.')
    if (none !== '') throw new Error('the signature is not detached')
    const key = signedBy(head, readFileSync(what).toString('base64url'), signature, 'quittance-export+jws')
    console.log(`${what} is signed by ${key.kid} (${key.mode})`)
  } else {
    const [head, payload, signature] = what.trim().split('#').pop().split('.')
    const key = signedBy(head, payload, signature, 'quittance-batch+jwt')
    console.log(JSON.stringify({ claims: JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')), test: key.mode !== 'live' }))
  }
} catch (e) {
  console.error(`not proven: ${e.message}`)
  process.exit(1)
}
