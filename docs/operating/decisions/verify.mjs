// Verifies the output of `quittance decisions verify --json` without Quittance.
//
//	node verify.mjs decisions.json [PUBLIC_KEY…]
//
// A PUBLIC_KEY is one that you know to be a person's, as the list has it. Without any, the
// script says whose name the list gives to each key; compare them yourself.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [file, ...known] = process.argv.slice(2)
const bytes = (text) => Buffer.from(text, 'base64url')
const sha256 = (data) => createHash('sha256').update(data).digest()

function fault(d) {
  const statement = Buffer.from(d.statement)
  const challenge = bytes(d.challenge)
  const authenticator = bytes(d.authenticator_data)
  const client = JSON.parse(bytes(d.client_data))
  const [line, object] = [d.statement.slice(0, d.statement.indexOf('\n')), d.statement.slice(d.statement.indexOf('\n') + 1)]
  const said = JSON.parse(object)
  if (line !== 'quittance decision v1') return 'the statement is of another form'
  for (const name of ['kind', 'subject', 'verdict', 'person']) {
    if (said[name] !== d[name]) return `the statement says another ${name}`
  }
  if (challenge.length !== 64 || !challenge.subarray(32).equals(sha256(statement))) return 'another statement was signed'
  if (client.type !== 'webauthn.get' || client.challenge !== d.challenge) return 'another challenge was signed'
  if (!authenticator.subarray(0, 32).equals(sha256(Buffer.from(d.host)))) return 'the passkey is of another host'
  if ((authenticator[32] & 5) !== 5) return 'the authenticator has not verified the person'
  const key = createPublicKey({ key: bytes(d.public_key), format: 'der', type: 'spki' })
  const signed = Buffer.concat([authenticator, sha256(bytes(d.client_data))])
  const hash = { 'secp384r1': 'sha384', 'secp521r1': 'sha512' }[key.asymmetricKeyDetails?.namedCurve] ?? 'sha256'
  if (!verify(key.asymmetricKeyType === 'ed25519' ? null : hash, signed, key, bytes(d.signature))) return 'the signature does not hold'
  if (known.length > 0 && !known.includes(d.public_key)) return 'the public key is none that you know'
  return ''
}

let wrong = 0
for (const d of JSON.parse(readFileSync(file))) {
  let why
  try {
    why = fault(d)
  } catch (error) {
    why = `it cannot be read: ${error.message}`
  }
  if (why) wrong++
  console.log(`${d.at} ${d.name} ${d.verdict} ${d.kind} ${d.subject}: ${why || 'holds'} (key ${d.public_key.slice(-12)})`)
}
process.exit(wrong > 0 ? 1 : 0)
