// FIPS 180-4. By hand because WebCrypto only answers later, and not at all on pages served over plain http from another
// machine, and node:crypto is not in browsers; a tool call waits for this hash. 256 KiB take about 3 ms.

declare const TextEncoder: new () => { encode(text: string): Uint8Array }
const utf8 = new TextEncoder()

const [INITIAL, ROUND] = constants()

/** Lowercase hex SHA-256 of a text as UTF-8. */
export function sha256(text: string): string {
  const blocks = padded(utf8.encode(text))
  const state = INITIAL.slice()
  const schedule = new Uint32Array(64)
  for (let offset = 0; offset < blocks.byteLength; offset += 64) {
    for (let i = 0; i < 16; i++) schedule[i] = blocks.getUint32(offset + i * 4)
    addBlock(state, schedule)
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, '0')).join('')
}

/** The message, one bit, zeros, and its length in bits as the last 64 bits of a block. */
function padded(message: Uint8Array): DataView {
  const bytes = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64)
  bytes.set(message)
  bytes[message.length] = 0x80
  const view = new DataView(bytes.buffer)
  view.setBigUint64(bytes.length - 8, BigInt(message.length) * 8n)
  return view
}

function addBlock(state: Uint32Array, w: Uint32Array): void {
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!
    const y = w[i - 2]!
    const low = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3)
    const high = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10)
    w[i] = w[i - 16]! + low + w[i - 7]! + high
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
  for (let i = 0; i < 64; i++) {
    const mixE = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
    const added = (h + mixE + ((e & f) ^ (~e & g)) + ROUND[i]! + w[i]!) | 0
    const mixA = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    h = g
    g = f
    f = e
    e = (d + added) | 0
    d = c
    c = b
    b = a
    a = (added + mixA + majority) | 0
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) state[index] = state[index]! + word
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}

/** First 32 bits of the fractions of the square roots of the first 8 primes and the cube roots of the first 64. */
function constants(): [Uint32Array, Uint32Array] {
  const primes: bigint[] = []
  for (let n = 2n; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0n)) primes.push(n)
  return [
    Uint32Array.from(primes.slice(0, 8), (prime) => fraction(prime, 2n)),
    Uint32Array.from(primes, (prime) => fraction(prime, 3n)),
  ]
}

/** floor(n^(1/power) * 2^32) mod 2^32, exact, by bisection. */
function fraction(n: bigint, power: bigint): number {
  const target = n << (32n * power)
  let low = 0n
  let high = n << 32n
  while (low < high) {
    const middle = (low + high + 1n) / 2n
    if (middle ** power <= target) low = middle
    else high = middle - 1n
  }
  return Number(low & 0xffff_ffffn)
}
