// Verifies an exported batch of disbursements without Quittance.
//
//	node verify.mjs batch.json [PERSON=KEY…]
//
// KEY is the SHA-256 of a public key that you know to be a person's, in hexadecimal. Without any, the script says whose
// name the batch gives to each key; compare them yourself. It says what was signed, and exits with 1 if anything differs.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [file, ...known] = process.argv.slice(2)
const bytes = (text) => Buffer.from(text, 'base64url')
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const must = (holds, why) => { if (!holds) throw new Error(why) }

// The canonical JSON of RFC 8785, of printable ASCII and integers.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (value !== null && typeof value === 'object') {
    return `{${Object.keys(value).sort().map((name) => `${canonical(name)}:${canonical(value[name])}`).join()}}`
  }
  must(typeof value === 'string' ? /^[ -~]*$/.test(value) : Number.isSafeInteger(value), `${value} is no printable ASCII and no integer`)
  return JSON.stringify(value)
}

// The root of the tree of RFC 6962. The leaves bear their zero byte.
function root(leaves) {
  if (leaves.length === 1) return leaves[0]
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  return sha256(Buffer.of(1), root(leaves.slice(0, left)), root(leaves.slice(left)))
}

function checkLines(batch, lines) {
  const accounts = new Map()
  const leaves = []
  let sum = 0, largest = 0, last = ''
  for (const { salt, ...line } of lines) {
    must(last < line.line_ref, `line ${line.line_ref} is not in order`)
    must(line.currency === batch.currency && line.amount > 0, `line ${line.line_ref} has another currency or no amount`)
    leaves.push(sha256(Buffer.of(0), Buffer.from(salt, 'hex'), canonical(line)))
    const account = accounts.get(line.payout_account) ?? { count: 0, sum: 0 }
    accounts.set(line.payout_account, { count: account.count + 1, sum: account.sum + line.amount })
    sum += line.amount
    largest = Math.max(largest, line.amount)
    last = line.line_ref
  }
  must(lines.length === batch.count && sum === batch.sum && largest === batch.largest, 'count, sum or largest amount differ')
  must(accounts.size === batch.accounts.length, 'the payout accounts differ')
  for (const { code, count, sum } of batch.accounts) {
    must(accounts.get(code)?.count === count && accounts.get(code)?.sum === sum, `the lines of account ${code} differ`)
  }
  must(root(leaves).toString('hex') === batch.root, 'the lines are not those that were approved')
}

function checkApproval(batch, digest, approval) {
  const { level, person } = approval
  const key = sha256(bytes(approval.public_key)).toString('hex')
  const listed = batch.policy.levels[level - 1]?.persons.find((p) => p.id === person && p.for === approval.for)
  must(listed?.keys.includes(key), `${person} has no such passkey at level ${level}`)
  must(known.length === 0 || known.includes(`${person}=${key}`), `you do not know the passkey of ${person}`)
  const statement = sha256('quittance approval v1\n', canonical({ digest, level, person, verdict: 'approve' }))
  const client = JSON.parse(bytes(approval.client_data))
  const challenge = bytes(client.challenge)
  must(challenge.length === 64 && challenge.subarray(32).equals(statement), `${person} signed something else`)
  must(client.type === 'webauthn.get' && client.origin === batch.origin && !client.crossOrigin, `${person} signed on another page`)
  const data = bytes(approval.authenticator_data)
  must(data.subarray(0, 32).equals(sha256(batch.rp_id)), `the passkey of ${person} is of another host`)
  must((data[32] & 5) === 5, `the authenticator has not verified ${person}`)
  const spki = createPublicKey({ key: bytes(approval.public_key), format: 'der', type: 'spki' })
  must(spki.asymmetricKeyType !== 'ec' || spki.asymmetricKeyDetails.namedCurve === 'prime256v1', 'the key is of another curve')
  const signed = Buffer.concat([data, sha256(bytes(approval.client_data))])
  must(verify(spki.asymmetricKeyType === 'ed25519' ? null : 'sha256', signed, spki, bytes(approval.signature)), `the signature of ${person} does not hold`)
  console.log(`level ${level}: ${person}${approval.for ? ` for ${approval.for}` : ''} with passkey ${key}`)
}

try {
  const { form, batch, lines, approvals } = JSON.parse(readFileSync(file))
  must(form === 'quittance disbursement export v1', 'the file has another form')
  checkLines(batch, lines)
  must(batch.policy.levels.length > 0 && batch.policy.levels.every(({ needed }) => needed > 0), 'nobody had to approve it')
  const digest = sha256('quittance disbursement v1\n', canonical(batch)).toString('hex')
  const people = approvals.flatMap((a) => (a.for ? [a.person, a.for] : [a.person]))
  must(new Set([...people, batch.maker]).size === people.length + 1, 'a person approved twice, or made the batch')
  approvals.forEach((approval) => checkApproval(batch, digest, approval))
  batch.policy.levels.forEach(({ needed }, i) => {
    must(approvals.filter((a) => a.level === i + 1).length === needed, `level ${i + 1} needs ${needed} approvals`)
  })
  console.log(`${batch.batch_ref} revision ${batch.revision}: ${batch.count} lines, ${batch.sum} ${batch.currency}: holds (digest ${digest})`)
} catch (error) {
  console.log(`does not hold: ${error.message}`)
  process.exit(1)
}
