// read.mjs FOLDER PHOTOS FILE… renders the page with the code of each PDF with MuPDF, in two ways:
// as a printer does, and as a phone sees the paper: turned, in perspective, blurred, noisy
// and unevenly lit. The text is that of all pages. Two libraries decode the QR code in both pictures. It prints a JSON line
// for each file: {file, pages, text, print: [jsQR, ZXing], photo: [jsQR, ZXing]}. FOLDER has
// node_modules. PHOTOS is a pattern: only files that match are photographed. With PICTURES
// in the environment it writes the photographs into that folder.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'

const require = createRequire(join(process.argv[2], 'x.js'))
const mupdf = await import(require.resolve('mupdf'))
const jsQR = require('jsqr')
const zxing = require('zxing-wasm/reader')
const wasmBinary = readFileSync(join(process.argv[2], 'node_modules/zxing-wasm/dist/reader/zxing_reader.wasm'))
await zxing.prepareZXingModule({ overrides: { wasmBinary }, fireImmediately: true })

// grey renders a page as bytes of luminance.
function grey(page, scale) {
  const pixels = page.toPixmap(mupdf.Matrix.scale(scale, scale), mupdf.ColorSpace.DeviceGray, false)
  return { width: pixels.getWidth(), height: pixels.getHeight(), data: Uint8Array.from(pixels.getPixels()) }
}

// shots are how a hand holds the phone: the angle in radians, and the perspective. A reader
// tries one after the other, as a camera gives it many.
const shots = [
  [0.07, 0.03, 0.04],
  [-0.05, -0.02, 0.03],
  [0.01, 0.005, -0.01],
]

// photo bends a picture. Its noise is that of a fixed seed.
function photo(from, [angle, across, down]) {
  const { width, height } = from
  const data = new Uint8Array(width * height)
  let seed = 17
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648
  const at = (x, y) => {
    const column = Math.floor(x), row = Math.floor(y)
    if (column < 0 || row < 0 || column >= width - 1 || row >= height - 1) return 120
    const [a, b, i] = [x - column, y - row, row * width + column]
    return (from.data[i] * (1 - a) + from.data[i + 1] * a) * (1 - b) + (from.data[i + width] * (1 - a) + from.data[i + width + 1] * a) * b
  }
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [u, v] = [x - width / 2, y - height / 2]
      const w = 1 + (across * u + down * v) / width // perspective
      const [sx, sy] = [(u * cos - v * sin) / w + width / 2, (u * sin + v * cos) / w + height / 2]
      let sum = 0 // blur over a third of a millimetre
      for (const d of [-1.2, 0, 1.2]) sum += at(sx + d, sy) + at(sx, sy + d)
      const light = 0.6 + 0.35 * (x / width)
      data[y * width + x] = Math.max(0, Math.min(255, (sum / 6) * light + 25 * (random() - 0.5)))
    }
  }
  return { width, height, data }
}

// decode returns what both libraries read, and where: the corners of the code.
async function decode({ width, height, data }) {
  const rgba = new Uint8ClampedArray(width * height * 4)
  for (let i = 0; i < data.length; i++) rgba.set([data[i], data[i], data[i], 255], i * 4)
  const out = { read: [jsQR(rgba, width, height, { inversionAttempts: 'dontInvert' })?.data ?? null] }
  const [found] = await zxing.readBarcodes({ data: rgba, width, height }, { formats: ['QRCode'], maxNumberOfSymbols: 1 })
  out.read.push(found?.text ?? null)
  if (found) out.points = ['topLeft', 'topRight', 'bottomLeft', 'bottomRight'].map((corner) => [found.position[corner].x, found.position[corner].y])
  return out
}

// crop cuts a rectangle out of a picture: what a person points the phone at.
function crop(from, x, y, w, h) {
  const data = new Uint8Array(w * h)
  for (let row = 0; row < h; row++) data.set(from.data.subarray((y + row) * from.width + x, (y + row) * from.width + x + w), row * w)
  return { width: w, height: h, data }
}

// around cuts out what a person points the phone at: the code and a fifth of it around.
function around(from, points) {
  const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])]
  const [left, top, right, end] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)].map(Math.round)
  const by = Math.round((right - left) / 5)
  const [x, y] = [Math.max(0, left - by), Math.max(0, top - by)]
  return crop(from, x, y, Math.min(from.width, right + by) - x, Math.min(from.height, end + by) - y)
}

for (const file of process.argv.slice(4)) {
  const doc = mupdf.Document.openDocument(readFileSync(file), 'application/pdf')
  const pages = Array.from({ length: doc.countPages() }, (_, n) => doc.loadPage(n))
  // A notice has large modules. 150 dots an inch are what a phone sees at arm's length.
  const notice = basename(file).startsWith('notice')
  let part, print
  for (const [n, page] of pages.entries()) {
    const picture = grey(page, (notice ? 150 : 300) / 72)
    const half = Math.floor(picture.width / 2)
    // A code that is not on the first page stands wherever that page begins.
    const top = n === 0 ? 0.4 : 0
    part = notice ? crop(picture, half, 150, half, 600) : crop(picture, 0, Math.floor(picture.height * top), half, Math.floor(picture.height * (0.95 - top)))
    print = await decode(part)
    if (print.points || notice) break
  }
  const near = print.points ? around(part, print.points) : part
  const photographs = [null, null]
  for (const [n, shot] of basename(file).match(process.argv[3]) ? shots.entries() : []) {
    const bent = photo(near, shot)
    const { read } = await decode(bent)
    read.forEach((text, i) => (photographs[i] ??= text))
    if (process.env.PICTURES) {
      writeFileSync(join(process.env.PICTURES, `${basename(file)}.photo${n}.pgm`), Buffer.concat([Buffer.from(`P5 ${bent.width} ${bent.height} 255\n`), bent.data]))
    }
  }
  console.log(JSON.stringify({ file: basename(file), pages: pages.length, text: pages.map((page) => page.toStructuredText().asText()).join('\n'), print: print.read, photo: photographs }))
}
