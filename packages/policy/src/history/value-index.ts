/**
 * An index of the values in texts, by source: a hash table of words, pairs of neighbouring words, and numbers. A value of
 * several words counts as found if each pair of neighbours occurs, even if no text contains the whole value (README: false
 * hits). The index takes at most 721 kB. Once it is full, values of later texts are not found, and `isFull` is true.
 */
import { isOfWord, numbersOf, numberText, plainOf, readings, spellings, TEXT_CHARS } from './words.ts'

declare const crypto: { getRandomValues(numbers: Uint32Array): Uint32Array }

/** Each source is a bit. */
export const SOURCES_MAX = 16
const SETS_MAX = 255

const SLOTS_MIN = 1 << 10
const SLOTS_MAX = 1 << 17
/** Characters that are read in one part. */
const PART_CHARS = 16_384
/** Maximum share of used slots. */
const FILL_MAX = 0.85
/** Numbers that people write in groups: of accounts, cards and phones. At least half of the characters are digits. */
const GROUPED_DIGITS_MIN = 5
const GROUPED_MIN = 7
const GROUPED_MAX = 34
const GROUP_MAX = 7
/** Longest value that is looked up: a longer one is no name, number or address. */
const VALUE_WORDS_MAX = 64

/** Differs in each process, so that an attacker cannot construct two values with one hash. */
const SEED = crypto.getRandomValues(new Uint32Array(1))[0] as number
const PAIR = SEED ^ 0x9e3779b9
const NUMBER = SEED ^ 0x85ebca6b

export class ValueIndex {
  #hashes = new Uint32Array(SLOTS_MIN)
  /** Places in `#sets`. */
  #sources = new Uint8Array(SLOTS_MIN)
  /** All sets of sources that occur. */
  readonly #sets = [0]
  /**
   * Four bits for each slot, indexed by the low bits of a hash. A bit is 0 if no hash in the table has these low bits: this
   * saves a walk over slots, which is long in a table that is nearly full.
   */
  #bits = new Uint8Array(SLOTS_MIN / 2)
  #used = 0
  /** The last word of the text that is being read, or 0. */
  #previous = 0
  /** Whether a text, or a part of one, is missing. */
  isFull = false

  addNumber(value: number, source: number): void {
    this.#put(hashOf(numberText(value), NUMBER), source)
  }

  /** Adds a text in parts of a few milliseconds, between which a host can do other work. @param source one bit */
  *add(text: string, source: number): Generator<void> {
    if (text.length > TEXT_CHARS) this.isFull = true
    for (const reading of readings(text.slice(0, TEXT_CHARS))) {
      yield
      const plain = plainOf(reading)
      this.#previous = 0
      for (let at = 0; at < plain.length;) {
        yield
        at = this.#addWords(plain, at, source)
      }
      yield
      for (const number of numbersOf(reading)) this.#put(hashOf(number, NUMBER), source)
    }
  }

  /** Adds the words of one part. Returns where the next part begins. */
  #addWords(plain: string, from: number, source: number): number {
    let at = from
    while (at < plain.length && at < from + PART_CHARS) {
      const start = at
      let hash = SEED
      for (let code = plain.charCodeAt(at); isOfWord(code); code = plain.charCodeAt(++at)) hash = hashed(hash, code)
      if (at++ === start) continue
      hash = mixed(hash)
      this.#put(hash, source)
      if (this.#previous !== 0) this.#put(pairOf(this.#previous, hash), source)
      this.#previous = hash
    }
    return at
  }

  /** The sources in which it occurs, as bits. 0 for a text without words. */
  find(value: string | number): number {
    if (typeof value === 'number') return this.#get(hashOf(numberText(value), NUMBER))
    return spellings(value.slice(0, TEXT_CHARS)).reduce((sources, reading) => sources | this.#findText(reading), 0)
  }

  #findText(text: string): number {
    const plain = plainOf(text)
    let joined = ''
    let words = 0
    let digits = 0
    let first = 0
    let previous = 0
    let inOrder = ~0
    for (let at = 0; at < plain.length; at++) {
      const start = at
      let hash = SEED
      // `charCodeAt` is slow behind the end of a text.
      for (; at < plain.length; at++) {
        const code = plain.charCodeAt(at)
        if (!isOfWord(code)) break
        if (code < 58) digits++
        hash = hashed(hash, code)
      }
      if (at === start) continue
      if (++words > VALUE_WORDS_MAX) return 0
      joined += plain.slice(start, at)
      hash = mixed(hash)
      if (words === 1) first = hash
      else if (inOrder !== 0) inOrder &= this.#get(pairOf(previous, hash))
      previous = hash
    }
    if (words === 0) return 0
    const asWords = words === 1 ? this.#get(first) : inOrder
    const asNumber = digits === joined.length ? this.#findNumber(text) : 0
    return asNumber | asWords | this.#findGrouped(joined, digits)
  }

  #findNumber(text: string): number {
    const [number, ...others] = numbersOf(text)
    return number === undefined || others.length > 0 ? 0 : this.#get(hashOf(number, NUMBER))
  }

  /** The same characters in other groups: `GB33BUKB2020` is `GB33 BUKB 2020`. */
  #findGrouped(joined: string, digits: number): number {
    const { length } = joined
    if (digits < GROUPED_DIGITS_MIN || digits * 2 < length || length < GROUPED_MIN || length > GROUPED_MAX) return 0
    return this.#get(hashOf(joined, SEED)) | this.#findRest(joined, 0, 0, 0, undefined)
  }

  /**
   * The sources that have the rest of the value, after the word before it. @param known results by place and size of that word
   */
  #findRest(joined: string, at: number, before: number, previous: number, known?: Map<number, number>): number {
    if (at === joined.length) return ~0
    const key = at * 8 + before
    const remembered = known?.get(key)
    if (remembered !== undefined) return remembered
    let [ofRest, sources, unmixed] = [known, 0, SEED]
    for (let size = 1; size <= GROUP_MAX && at + size <= joined.length; size++) {
      unmixed = hashed(unmixed, joined.charCodeAt(at + size - 1))
      const hash = mixed(unmixed)
      let pair = this.#get(hash)
      if (pair !== 0 && before !== 0) pair &= this.#get(pairOf(previous, hash))
      // Most values end here: no text has their first words.
      if (pair !== 0) sources |= pair & this.#findRest(joined, at + size, size, hash, (ofRest ??= new Map()))
    }
    known?.set(key, sources)
    return sources
  }

  get #hasRoom(): boolean {
    return this.#used < this.#hashes.length * FILL_MAX
  }

  #put(hash: number, source: number): void {
    if (!this.#hasRoom && this.#hashes.length < SLOTS_MAX) this.#grow()
    const slot = this.#hasRoom || this.#mayHave(hash) ? this.#slotOf(hash) : -1
    if (slot < 0 || this.#hashes[slot] === 0) {
      if (!this.#hasRoom) {
        this.isFull = true
        return
      }
      this.#hashes[slot] = hash
      this.#mark(hash)
      this.#used++
    }
    const known = this.#sets[this.#sources[slot] as number] as number
    const sources = known | source
    if (sources === known) return
    let set = this.#sets.indexOf(sources)
    // Labels need far fewer sets, unless an attacker constructs them.
    if (set < 0 && this.#sets.length > SETS_MAX) this.isFull = true
    else {
      if (set < 0) set = this.#sets.push(sources) - 1
      this.#sources[slot] = set
    }
  }

  #get(hash: number): number {
    // Most values are not in the index.
    if (!this.#mayHave(hash)) return 0
    return this.#sets[this.#sources[this.#slotOf(hash)] as number] as number
  }

  #mayHave(hash: number): boolean {
    const bits = this.#bits
    return ((bits[(hash >>> 3) & (bits.length - 1)] as number) & (1 << (hash & 7))) !== 0
  }

  #mark(hash: number): void {
    const bits = this.#bits
    const at = (hash >>> 3) & (bits.length - 1)
    bits[at] = (bits[at] as number) | (1 << (hash & 7))
  }

  /** The slot of a hash, or the free slot for it. */
  #slotOf(hash: number): number {
    const last = this.#hashes.length - 1
    let slot = hash & last
    // An odd step reaches each slot. A step of one would need many steps in a table that is nearly full.
    const step = (hash >>> 16) | 1
    while (this.#hashes[slot] !== 0 && this.#hashes[slot] !== hash) slot = (slot + step) & last
    return slot
  }

  #grow(): void {
    const [hashes, sources] = [this.#hashes, this.#sources]
    const slots = Math.min(hashes.length * 4, SLOTS_MAX)
    this.#hashes = new Uint32Array(slots)
    this.#sources = new Uint8Array(slots)
    this.#bits = new Uint8Array(slots / 2)
    for (let at = 0; at < hashes.length; at++) {
      const hash = hashes[at] as number
      if (hash === 0) continue
      const slot = this.#slotOf(hash)
      this.#hashes[slot] = hash
      this.#mark(hash)
      this.#sources[slot] = sources[at] as number
    }
  }
}

/** FNV-1a over UTF-16 units, with the final mix of MurmurHash3. Never 0. */
function hashOf(text: string, kind: number): number {
  let hash = kind
  for (let at = 0; at < text.length; at++) hash = hashed(hash, text.charCodeAt(at))
  return mixed(hash)
}

function hashed(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193)
}

function pairOf(first: number, second: number): number {
  return mixed(Math.imul(first, 0x01000193) ^ second ^ PAIR)
}

function mixed(mixedHash: number): number {
  let hash = Math.imul(mixedHash ^ (mixedHash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0 || 1
}
