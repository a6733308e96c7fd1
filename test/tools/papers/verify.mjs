// verify.mjs KEYS RECEIPT verifies a receipt without network. KEYS is a file with the
// service's /.well-known/jwks.json, RECEIPT what the QR code holds. Needs jose.
import { readFileSync } from 'node:fs'
import { compactVerify, importJWK } from 'jose'

const { keys } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const token = process.argv[3].split('#').pop()
let key // the one with the kid; never one that the algorithm suggests
const { payload } = await compactVerify(
  token,
  (header) => {
    key = keys.find((k) => k.kid === header.kid)
    if (!key || header.typ !== 'quittance+jwt') throw new Error('no key of this service has signed this')
    return importJWK(key, 'EdDSA')
  },
  { algorithms: ['EdDSA'] },
)
const claims = JSON.parse(new TextDecoder().decode(payload))
// Whether the payment was reversed: ask the service.
console.log(JSON.stringify({ claims, test: key.mode !== 'live' }))
