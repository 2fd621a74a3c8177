/**
 * Finds the condition that asks for the fewest calls and still asks for every rejected one, from the decided calls of
 * one policy.
 *
 *   fields that all rejected calls have --> atoms that are true of every rejected call --> the one, or the two together, that
 *     ask about the fewest approved calls --> checked by the engine on every call
 *
 * Atoms are limits of numbers, and lists of short texts and tool names. An atom asks if its value is not recorded, is
 * masked, or has another type, like a condition that cannot be evaluated.
 */
import { compileCondition, type Condition } from '@tacho/policy/compile.ts'
import { evaluate } from '@tacho/policy/evaluate.ts'

export interface DecidedCall {
  toolName: string
  isRejected: boolean
  /** Null: the input is not recorded as it was judged. */
  input: Readonly<Record<string, unknown>> | null
  /** Pointers of masked values. */
  sealed: readonly string[]
}

export interface FoundCondition {
  addition: string
  /** For each call, whether the condition asks. */
  asks: readonly boolean[]
  leftOut: { calls: number; kept: number }
  /** Number of different rejected calls: an agent may repeat one that was rejected. */
  differentRejected: number
}

const [DEPTH, FIELDS, LISTED, TEXT_CHARS] = [3, 60, 20, 60]
/** Number of atoms that are combined to pairs: those that ask least. */
const PAIRED = 24
const LEFT_OUT = 12
const CALLS_IN_TURN = 200
const NAME = /^[A-Za-z_]\w{0,60}$/
/** Reserved words, which cannot name a field. */
const RESERVED = new Set(['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function'])
const OTHERS = ['if', 'import', 'let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while']
const isName = (key: string) => NAME.test(key) && !RESERVED.has(key) && !OTHERS.includes(key)

/** Let other requests run in between. */
const turn = () => new Promise(setImmediate)

const MISSING = Symbol('missing')
const UNKNOWN = Symbol('unknown')

interface Field {
  /** The field as conditions write it. */
  name: string
  /** Checks that must come before the field is read. */
  guards: string
  values: unknown[]
}

interface Atom {
  text: string
  asks: Uint8Array
  /** Approved calls for which the condition asks. */
  asked: number
  /** Among atoms that ask equally little, the smaller rank wins: it asks about more future calls. */
  rank: number
}

/** Null: no condition asks about fewer calls. */
export async function proposedCondition(calls: readonly DecidedCall[]): Promise<FoundCondition | null> {
  const fields = await fieldsOfCalls(calls)
  const rejected = calls.flatMap(({ isRejected }, at) => (isRejected ? [at] : []))
  const addition = await search(calls, fields, new Set(rejected))
  if (addition === null) return null
  const compiled = compileCondition(addition.text)
  if (!compiled.ok) return null
  const asks: boolean[] = []
  for (const [at, call] of calls.entries()) {
    if (at % CALLS_IN_TURN === 0) await turn()
    asks.push(isAsked(compiled.condition, call, addition.asks[at] === 1))
  }
  if (rejected.some((at) => !asks[at])) return null
  const different = await differentCalls(calls, rejected)
  const leftOut = await leaveOut(calls, fields, different)
  return { addition: addition.text, asks, leftOut, differentRejected: different.length }
}

/** Groups of equal rejected calls. */
async function differentCalls(calls: readonly DecidedCall[], rejected: readonly number[]): Promise<number[][]> {
  const different = new Map<string, number[]>()
  for (const [n, at] of rejected.entries()) {
    if (n % CALLS_IN_TURN === 0) await turn()
    const key = JSON.stringify([calls[at]?.toolName, calls[at]?.input])
    const equal = different.get(key)
    if (equal) equal.push(at)
    else different.set(key, [at])
  }
  return [...different.values()]
}

/** Leaves out all calls that are equal. If one of them stayed, the search would still know the call that is left out. */
async function leaveOut(calls: readonly DecidedCall[], fields: readonly Field[], different: readonly number[][]) {
  const leftOut = { calls: 0, kept: 0 }
  const rejected = different.flat()
  const step = Math.ceil(different.length / LEFT_OUT)
  for (let at = 0; different.length > 1 && at < different.length; at += step) {
    await turn()
    const same = new Set(different[at])
    const without = await search(calls, fields, new Set(rejected.filter((other) => !same.has(other))), same)
    leftOut.calls += 1
    if (without === null || [...same].every((one) => without.asks[one] === 1)) leftOut.kept += 1
  }
  return leftOut
}

/** Evaluates the condition if the call is recorded whole; otherwise takes the search's result. */
function isAsked(condition: Condition, { toolName, input, sealed }: DecidedCall, searched: boolean): boolean {
  if (input === null || sealed.length > 0) return searched
  const outcome = evaluate(condition, { tool: { name: toolName, input }, now: 0 })
  return !outcome.ok || outcome.matched
}

/** Fields of the first rejected calls, with the value of each call. */
async function fieldsOfCalls(calls: readonly DecidedCall[]): Promise<Field[]> {
  const paths = new Map<string, string[]>()
  for (const { input } of calls.filter((call) => call.isRejected && call.input !== null).slice(0, 5)) {
    for (const path of pathsIn(input ?? {}, [])) {
      if (paths.size < FIELDS) paths.set(path.join('.'), path)
    }
  }
  const fields: Field[] = [{ name: 'tool.name', guards: '', values: calls.map(({ toolName }) => toolName) }]
  for (const path of paths.values()) {
    await turn()
    const steps = path.map((_, at) => `tool.input.${path.slice(0, at + 1).join('.')}`)
    const guards = steps.map((step) => `has(${step}) && `).join('')
    fields.push({ name: steps.at(-1) ?? '', guards, values: calls.map((call) => valueOf(call, path)) })
  }
  return fields
}

function* pathsIn(value: object, path: string[]): Generator<string[]> {
  for (const [key, member] of Object.entries(value)) {
    if (!isName(key)) continue
    const next = [...path, key]
    if (isPlain(member) && next.length < DEPTH) yield* pathsIn(member, next)
    else if (['number', 'string', 'boolean'].includes(typeof member)) yield next
  }
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function valueOf({ input, sealed }: DecidedCall, path: readonly string[]): unknown {
  if (input === null) return UNKNOWN
  let [value, pointer]: [unknown, string] = [input, '']
  for (const key of path) {
    if (!isPlain(value)) return UNKNOWN
    if (!Object.hasOwn(value, key)) return MISSING
    pointer += `/${key}`
    value = (value as Record<string, unknown>)[key]
    if (sealed.includes(pointer)) return UNKNOWN
  }
  return sealed.some((other) => other.startsWith(`${pointer}/`)) ? UNKNOWN : value
}

/** @param left rejected calls that are left out: the search must not ask for them and does not count them. */
async function search(
  calls: readonly DecidedCall[],
  fields: readonly Field[],
  rejected: ReadonlySet<number>,
  left: ReadonlySet<number> = new Set(),
): Promise<Atom | null> {
  const counted = Uint8Array.from(calls, ({ isRejected }, at) => (!isRejected && !left.has(at) ? 1 : 0))
  const most = sumOf(counted, counted, counted)
  const atoms: Atom[] = []
  for (const field of fields) {
    // Yield: with 10,000 calls, each step takes milliseconds.
    await turn()
    for (const atom of atomsOf(field, calls, rejected, left)) {
      const asked = sumOf(counted, atom.asks, atom.asks)
      if (asked < most) atoms.push({ ...atom, asked })
    }
  }
  atoms.sort(byQuestions)
  const paired = atoms.slice(0, PAIRED)
  let best: { asked: number; both: [Atom, Atom?] } | null = atoms[0]
    ? { asked: atoms[0].asked, both: [atoms[0]] }
    : null
  for (const [at, one] of paired.entries()) {
    await turn()
    for (const other of paired.slice(at + 1)) {
      const asked = sumOf(counted, one.asks, other.asks)
      // A pair is better only if it asks about fewer calls.
      if (best !== null && asked < best.asked) best = { asked, both: [one, other] }
    }
  }
  const [one, other] = best?.both ?? []
  if (best === null || one === undefined || other === undefined) return one ?? null
  const asks = one.asks.map((bit, at) => bit & (other.asks[at] ?? 0))
  return { text: `${one.text} && ${other.text}`, asks, asked: best.asked, rank: one.rank + other.rank }
}

/** Counts the calls for which all three are set. */
function sumOf(one: Uint8Array, two: Uint8Array, three: Uint8Array): number {
  let sum = 0
  for (let at = 0; at < one.length; at++) sum += one[at]! & two[at]! & three[at]!
  return sum
}

const byQuestions = (one: Atom, other: Atom): number =>
  one.asked - other.asked || one.rank - other.rank || one.text.length - other.text.length

type Found = Omit<Atom, 'asked'>

/** Conditions on one field that are true of every rejected call. */
function atomsOf(
  { name, guards, values }: Field,
  calls: readonly DecidedCall[],
  rejected: ReadonlySet<number>,
  left: ReadonlySet<number>,
): Found[] {
  const ofRejected = [...rejected].map((at) => values[at])
  const ofApproved = values.filter((_, at) => !rejected.has(at) && !left.has(at) && calls[at]?.isRejected === false)
  const atom = (text: string, type: string, rank: number, holds: (value: never) => boolean): Found => {
    const asks = new Uint8Array(values.length)
    for (const [at, value] of values.entries()) {
      asks[at] = value !== MISSING && (typeof value !== type || holds(value as never)) ? 1 : 0
    }
    return { text: `${guards}${text}`, asks, rank }
  }
  if (ofRejected.every((value) => typeof value === 'number')) {
    const numbers = ofApproved.filter((value) => typeof value === 'number')
    const [least, greatest] = [Math.min(...ofRejected), Math.max(...ofRejected)]
    const from = roundAbove(
      greatestOf(numbers, (value) => value < least),
      least,
    )
    const to = -roundAbove(
      greatestOf(
        numbers.map((value) => -value),
        (value) => value < -greatest,
      ),
      -greatest,
    )
    return [
      atom(`${name} >= ${literal(from)}`, 'number', 0, (value: number) => value >= from),
      atom(`${name} <= ${literal(to)}`, 'number', 0, (value: number) => value <= to),
    ]
  }
  if (ofRejected.every((value) => typeof value === 'boolean')) {
    const [only, ...others] = new Set(ofRejected)
    return others.length > 0 ? [] : [atom(`${name} == ${only}`, 'boolean', 0, (value: boolean) => value === only)]
  }
  if (!ofRejected.every((value): value is string => typeof value === 'string')) return []
  const bad = new Set(ofRejected)
  const good = new Set(ofApproved.filter((value): value is string => typeof value === 'string' && !bad.has(value)))
  const listed = (texts: ReadonlySet<string>) =>
    `[${[...texts]
      .toSorted()
      .map((text) => JSON.stringify(text))
      .join(', ')}]`
  return [
    // Lists the approved values, so the condition also asks for new values, which no decision covers yet.
    ...(isShort(good) ? [atom(`!(${name} in ${listed(good)})`, 'string', 1, (value: string) => !good.has(value))] : []),
    ...(isShort(bad) ? [atom(`${name} in ${listed(bad)}`, 'string', 2, (value: string) => bad.has(value))] : []),
  ]
}

const isShort = (texts: ReadonlySet<string>): boolean =>
  texts.size > 0 && texts.size <= LISTED && [...texts].every((text) => text.length <= TEXT_CHARS && text.isWellFormed())

function greatestOf(values: readonly number[], isCounted: (value: number) => boolean): number | null {
  return values.reduce<number | null>((most, value) => {
    return isCounted(value) && (most === null || value > most) ? value : most
  }, null)
}

/** The roundest number above `low` and not above `high`. */
function roundAbove(low: number | null, high: number): number {
  if (low === null) return high
  for (let power = Math.ceil(Math.log10(Math.abs(high) + 1)); power > -6; power--) {
    const round = Number((Math.floor(high / 10 ** power) * 10 ** power).toPrecision(12))
    if (round > low && round <= high) return round
  }
  return high
}

const literal = (value: number): string => (Math.abs(value) < 1e15 ? String(value) : value.toExponential())
