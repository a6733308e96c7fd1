// Computes the vectors of vectors.json from their inputs, without Quittance: node check.mjs vectors.json
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const vectors = JSON.parse(readFileSync(process.argv[2]))
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const hex = (text) => Buffer.from(text, 'hex')

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`
}

function root(leaves) {
  if (leaves.length === 0) return sha256('')
  if (leaves.length === 1) return leaves[0]
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  return sha256(Buffer.of(1), root(leaves.slice(0, left)), root(leaves.slice(left)))
}

let checked = 0
function same(got, want) {
  checked++
  if (got.toString('hex') !== want) {
    console.error(`${got.toString('hex')}, the vector says ${want}`)
    process.exit(1)
  }
}

for (const { salt, line, leaf } of vectors.lines) same(sha256(Buffer.of(0), hex(salt), canonical(line)), leaf)
for (const { leaves, root: want } of vectors.roots) same(root(leaves.map(hex)), want)
for (const { batch, canonical: text, digest } of vectors.batches) {
  same(Buffer.from(canonical(batch)), Buffer.from(text).toString('hex'))
  same(sha256('quittance disbursement v1\n', canonical(batch)), digest)
}
for (const { step, statement } of vectors.steps) same(sha256('quittance approval v1\n', canonical(step)), statement)
for (const { settlement, statement } of vectors.settlements) same(sha256('quittance settlement v1\n', canonical(settlement)), statement)
console.log(`${checked} vectors are right`)
