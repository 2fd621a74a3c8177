import { ALT, ALT_MATCH, CAPTURE, EMPTY_WIDTH, FIELDS, HEAD, MATCH, NOP, type Program, RUNE } from './program.ts'

// Conditions of an EMPTY_WIDTH instruction.
const BEGIN_LINE = 1
const END_LINE = 2
const BEGIN_TEXT = 4
const END_TEXT = 8
const WORD_BOUNDARY = 16
const NO_WORD_BOUNDARY = 32

// Fields of an instruction.
const OUT = 1
const ARGUMENT = 2
const CHARACTERS = 3

/** Pending instructions, with the known transitions by character. */
type State = { readonly pending: readonly number[]; next?: Map<number, State | true> }

// Maximum of cached numbers of an automaton, about 200 kB; then its states are dropped. The library's own matcher keeps
// 10,000 states of 10 kB forever (measured: 97 MB for one pattern and 100 kB of text), then falls back to an
// interpreter at 2 to 14 µs per character.
const REMEMBERED = 8192

/**
 * Searches a text with the program of an RE2 pattern, as a lazily built deterministic automaton. A character costs at most one
 * visit of each instruction, cached or not.
 */
export class Automaton {
  readonly program: Program
  readonly size: number
  readonly #start: State
  readonly #looksAround: boolean
  readonly #seen: Uint32Array
  #round = 0
  #states = new Map<string, State>()
  #remembered = 0

  constructor(program: Program) {
    const [size = 0, start = 0] = program
    this.program = program
    this.size = size
    this.#looksAround = isAnyOf(EMPTY_WIDTH, program)
    this.#seen = new Uint32Array(size)
    this.#start = { pending: [start] }
  }

  /** Approximate size of the cache, in numbers. */
  get remembered(): number {
    return this.#remembered
  }

  test(text: string): boolean {
    let state = this.#start
    let before = -1
    let forgotten = 0
    for (let i = 0; i < text.length;) {
      const rune = text.codePointAt(i) as number
      const around = this.#looksAround ? between(before, rune) : 0
      const key = rune * 64 + around
      let next = state.next?.get(key)
      if (next === undefined) {
        if (this.#remembered > REMEMBERED) {
          this.#forget()
          forgotten++
        }
        // Caching does not pay off for this text: continue without it.
        next = forgotten > 1 ? this.#follow(state, rune, around) : this.#learn(state, key, rune, around)
      }
      if (next === true) return true
      state = next
      before = rune
      i += rune > 0xffff ? 2 : 1
    }
    return this.#reach(state.pending, between(before, -1)) === true
  }

  #learn(from: State, key: number, rune: number, around: number): State | true {
    let next = this.#follow(from, rune, around)
    if (next !== true) {
      const name = String.fromCharCode(...next.pending)
      const known = this.#states.get(name)
      if (known) next = known
      else {
        this.#states.set(name, next)
        this.#remembered += 8 + next.pending.length
      }
    }
    ;(from.next ??= new Map()).set(key, next)
    this.#remembered += 4
    return next
  }

  /** The pending set after a character, or true if the pattern matched before it. */
  #follow(from: State, rune: number, around: number): State | true {
    const active = this.#reach(from.pending, around)
    if (active === true) return true
    const pending = this.#start.pending.slice()
    const round = this.#nextRound()
    this.#seen[pending[0] as number] = round
    for (const at of active) {
      const out = this.program[at + OUT] as number
      if (this.#seen[out] === round || !isIn(this.program, at, rune)) continue
      this.#seen[out] = round
      pending.push(out)
    }
    return { pending }
  }

  /** The rune instructions that are reachable without consuming a character; true if the end of the pattern is. */
  #reach(pending: readonly number[], around: number): number[] | true {
    const program = this.program
    const active: number[] = []
    const stack = pending.slice()
    const round = this.#nextRound()
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      if (this.#seen[pc] === round) continue
      this.#seen[pc] = round
      const at = HEAD + FIELDS * pc
      const op = program[at] as number
      const out = program[at + OUT] as number
      const argument = program[at + ARGUMENT] as number
      if (op === MATCH) return true
      if (op >= RUNE) active.push(at)
      else if (op === ALT || op === ALT_MATCH) stack.push(out, argument)
      else if (op === NOP || op === CAPTURE) stack.push(out)
      else if (op === EMPTY_WIDTH && (argument & ~around) === 0) stack.push(out)
    }
    return active
  }

  /** Starts a new round, in which earlier marks in #seen do not count. */
  #nextRound(): number {
    if (this.#round === 0xffff_ffff) {
      this.#seen.fill(0)
      this.#round = 0
    }
    return ++this.#round
  }

  #forget(): void {
    delete this.#start.next
    this.#states.clear()
    this.#remembered = 0
  }
}

function isAnyOf(code: number, program: Program): boolean {
  const end = HEAD + FIELDS * (program[0] as number)
  for (let at = HEAD; at < end; at += FIELDS) if (program[at] === code) return true
  return false
}

/** Whether the instruction accepts the character. */
function isIn(program: Program, instruction: number, rune: number): boolean {
  const at = program[instruction + CHARACTERS] as number
  let low = 0
  let high = program[at] as number
  while (low < high) {
    const middle = (low + high) >> 1
    const range = at + 1 + 2 * middle
    if (rune < (program[range] as number)) high = middle
    else if (rune > (program[range + 1] as number)) low = middle + 1
    else return true
  }
  return false
}

/** The empty-width conditions between two characters; -1 means no character. RE2's word characters are ASCII. */
function between(before: number, after: number): number {
  let holds = isWord(before) === isWord(after) ? NO_WORD_BOUNDARY : WORD_BOUNDARY
  if (before < 0) holds |= BEGIN_TEXT | BEGIN_LINE
  if (before === 10) holds |= BEGIN_LINE
  if (after < 0) holds |= END_TEXT | END_LINE
  if (after === 10) holds |= END_LINE
  return holds
}

function isWord(rune: number): boolean {
  return (rune >= 97 && rune <= 122) || (rune >= 65 && rune <= 90) || (rune >= 48 && rune <= 57) || rune === 95
}
