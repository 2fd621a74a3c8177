/**
 * History of a run, for conditions: `run.labels`, `run.calls` and `origin(value)`. A client keeps one for each run,
 * and the server makes one of recorded events. Bounded: 1,000 calls, inputs of 131,072 characters, and the index of values.
 *
 * Labels that the history adds to those of tools:
 * - `user`: the user said it
 * - `unlabelled`: it came from a tool whose output has no label
 * - `unknown`: a part of the history is missing, such as the values that another process of the run read
 */
import type { Action } from '../decide.ts'
import { copyJson } from '../input/json.ts'
import { POLICY_LIMITS } from '../limits.ts'
import { type History, isList, isMap, type Value } from '../evaluation/value.ts'
import { SOURCES_MAX, ValueIndex } from './value-index.ts'
import { TEXT_CHARS } from './words.ts'

// A web standard of every runtime.
declare const performance: { now(): number }

export const HISTORY_LABELS = { user: 'user', unlabelled: 'unlabelled', unknown: 'unknown' } as const

/** A call that ran, or that was refused. */
export interface HistoryCall {
  readonly tool: string
  /** Input that was judged; null if it could not be read. */
  readonly input: Readonly<Record<string, unknown>> | null
  /** Whether it ran and did not fail. */
  readonly ok: boolean
  readonly decision: Action
  /** Labels of the tool's effects. */
  readonly does: readonly string[]
  /** Labels of the tool's output. */
  readonly labels: readonly string[]
  /** Output that the model gets. Absent: none. */
  readonly output?: unknown
}

/** State that another process of the run needs, as plain JSON. Inputs and values are not part of it. */
export interface CarriedHistory {
  readonly labels: readonly string[]
  readonly calls: readonly CarriedCall[]
}

type CarriedCall = Pick<HistoryCall, 'tool' | 'labels' | 'ok' | 'decision'>

const CALLS_MAX = 1_000
const CARRIED_CALLS_MAX = 100
const INPUT_CHARS_MAX = 131_072
const CACHED_MAX = 256
/** Outputs of fewer characters are read at once: a timer would cost more. */
const LATER_CHARS = 16_384
/** Maximum characters of outputs that wait to be read. Beyond it, all are read at once, to bound the memory of the host. */
const UNREAD_CHARS_MAX = 1_048_576
const PART_MS = 2

export class RunHistory implements History {
  readonly #calls = new Calls()
  readonly #labels = new Set<string>()
  readonly #values = new ValueIndex()
  /** Name of each source, by its bit. */
  readonly #sources: string[] = [HISTORY_LABELS.user, HISTORY_LABELS.unlabelled]
  readonly #origins = new Map<string | number, readonly string[]>()
  #sortedLabels: readonly string[] | undefined
  readonly #later: ((act: () => void) => void) | undefined
  /** Outputs that the index does not have yet, oldest first. */
  readonly #unread: Generator<void>[] = []
  #unreadChars = 0
  #isPartDue = false
  /** The run began in another process, whose values are missing. */
  #isContinued = false

  /**
   * @param later calls a function in another turn of the host's loop. With it, long outputs are read in parts, and the rest
   * before the next value is looked up. Absent: they are read at once.
   */
  constructor(later?: (act: () => void) => void) {
    this.#later = later
  }

  /** Continues a run of another process. @param carried its history; undefined if that process kept none */
  continues(carried: CarriedHistory | undefined): void {
    this.#isContinued = true
    for (const label of carried?.labels ?? [HISTORY_LABELS.unknown]) this.#labels.add(label)
    for (const call of carried?.calls ?? []) this.#calls.add(call)
    this.#origins.clear()
    this.#sortedLabels = undefined
  }

  /** Adds words of the user. */
  said(words: unknown): void {
    this.#read(words, [HISTORY_LABELS.user])
  }

  ended(call: HistoryCall): void {
    const { labels, does, input, output } = call
    const allLabels = [...new Set([...labels, ...does])].toSorted()
    this.#calls.add({ ...call, labels: allLabels }, input === null ? undefined : readable(input))
    if (output === undefined) return
    for (const label of labels) this.#labels.add(label)
    this.#sortedLabels = undefined
    this.#read(output, labels.length === 0 ? [HISTORY_LABELS.unlabelled] : labels)
  }

  /** Labels of all outputs that the run has read. */
  get labels(): readonly string[] {
    return (this.#sortedLabels ??= [...this.#labels].toSorted())
  }

  /** Oldest first: maps with `tool`, `labels`, `ok`, `decision`, and `input` unless it is too old or not known. */
  get calls(): readonly Value[] {
    return this.#calls.inOrder
  }

  callsOf(tool: string): readonly Value[] {
    return this.#calls.ofTool(tool)
  }

  /** The labels of the outputs in which the value occurs, and `user` if the user said it. */
  origin(value: string | number): readonly string[] {
    const cached = this.#origins.get(value)
    if (cached) return cached
    this.#readAll()
    if (this.#origins.size >= CACHED_MAX) this.#origins.clear()
    const sources = this.#values.find(value)
    const origin = this.#sources.filter((_, bit) => (sources & (1 << bit)) !== 0)
    if (this.#isContinued || this.#values.isFull) origin.push(HISTORY_LABELS.unknown)
    if (origin.length > 1) origin.sort()
    this.#origins.set(value, origin)
    return origin
  }

  carried(): CarriedHistory {
    const calls = this.#calls.inOrder.slice(-CARRIED_CALLS_MAX).map((call) => {
      const { input: _, ...carried } = Object.fromEntries(call as ReadonlyMap<string, Value>)
      return carried as unknown as CarriedCall
    })
    return { labels: this.labels, calls }
  }

  #read(output: unknown, labels: readonly string[]): void {
    this.#origins.clear()
    const sources = labels.reduce((bits, label) => bits | this.#bitOf(label), 0)
    const text = jsonOf(output)
    if (text === undefined) {
      this.#values.isFull = true
      return
    }
    this.#unread.push(this.#reading(text, sources))
    this.#unreadChars += text.length
    const isLong = this.#unreadChars > LATER_CHARS && this.#unreadChars <= UNREAD_CHARS_MAX
    if (!this.#later || !isLong) this.#readAll()
    else if (!this.#isPartDue) this.#awaitPart()
  }

  *#reading(json: string, sources: number): Generator<void> {
    const value = valueOf(json)
    if (value === undefined) {
      this.#values.isFull = true
      return
    }
    yield
    let chars = 0
    const texts: string[] = []
    const visit = (inner: Value): void => {
      if (chars > TEXT_CHARS) this.#values.isFull = true
      else if (typeof inner === 'string') {
        chars += inner.length
        texts.push(inner)
      } else if (typeof inner === 'number') this.#values.addNumber(inner, sources)
      else if (isList(inner)) inner.forEach(visit)
      else if (isMap(inner)) {
        for (const [key, member] of inner) {
          visit(key)
          visit(member)
        }
      }
    }
    visit(value)
    for (const each of texts) yield* this.#values.add(each, sources)
  }

  #readAll(): void {
    if (this.#unread.length > 0) for (const reading of this.#unread.splice(0)) while (!reading.next().done);
    this.#unreadChars = 0
  }

  #awaitPart(): void {
    this.#isPartDue = true
    this.#later?.(() => this.#readPart())
  }

  #readPart(): void {
    this.#isPartDue = false
    const until = performance.now() + PART_MS
    while (this.#unread[0] && performance.now() < until) if (this.#unread[0].next().done) this.#unread.shift()
    if (this.#unread[0]) this.#awaitPart()
    else this.#unreadChars = 0
  }

  /** The bit of a label. 0 if there are too many labels to distinguish. */
  #bitOf(label: string): number {
    let bit = this.#sources.indexOf(label)
    if (bit < 0 && this.#sources.length < SOURCES_MAX) bit = this.#sources.push(label) - 1
    if (bit < 0) this.#values.isFull = true
    return bit < 0 ? 0 : 1 << bit
  }
}

/** The newest calls, in order and by tool, because conditions ask for the calls of one tool. */
class Calls {
  readonly inOrder: Value[] = []
  readonly #ofTool = new Map<string, Value[]>()
  /** Calls that still have their input, with its number of characters. */
  readonly #inputs: { readonly call: Map<string, Value>; readonly chars: number }[] = []
  #inputChars = 0

  ofTool(tool: string): readonly Value[] {
    return this.#ofTool.get(tool) ?? []
  }

  add({ tool, labels, ok, decision }: CarriedCall, input?: { readonly value: Value; readonly chars: number }): void {
    const call = new Map<string, Value>([
      ['tool', tool],
      ['labels', labels],
      ['ok', ok],
      ['decision', decision],
    ])
    if (input) this.#keepInput(call.set('input', input.value), input.chars)
    this.inOrder.push(call)
    const ofTool = this.#ofTool.get(tool)
    if (ofTool) ofTool.push(call)
    else this.#ofTool.set(tool, [call])
    if (this.inOrder.length > CALLS_MAX) this.#forgetOldest()
  }

  #keepInput(call: Map<string, Value>, chars: number): void {
    this.#inputs.push({ call, chars })
    this.#inputChars += chars
    while (this.#inputChars > INPUT_CHARS_MAX) {
      this.#inputs[0]?.call.delete('input')
      this.#forgetInput()
    }
  }

  #forgetInput(): void {
    this.#inputChars -= this.#inputs.shift()?.chars ?? 0
  }

  #forgetOldest(): void {
    const oldest = this.inOrder.shift() as ReadonlyMap<string, Value>
    const tool = oldest.get('tool') as string
    const ofTool = this.#ofTool.get(tool)
    ofTool?.shift()
    if (ofTool?.length === 0) this.#ofTool.delete(tool)
    if (this.#inputs[0]?.call === oldest) this.#forgetInput()
  }
}

/** A value as JSON, which is what a model gets. Undefined if it has no JSON form, or is too large. */
function readable(given: unknown): { value: Value; chars: number } | undefined {
  const json = jsonOf(given)
  const value = json === undefined ? undefined : valueOf(json)
  return json === undefined || value === undefined ? undefined : { value, chars: json.length }
}

function jsonOf(given: unknown): string | undefined {
  try {
    return JSON.stringify(given)
  } catch {
    return undefined
  }
}

function valueOf(json: string): Value | undefined {
  try {
    return copyJson(JSON.parse(json), { values: POLICY_LIMITS.inputValues * 10, levels: POLICY_LIMITS.inputLevels })
  } catch {
    return undefined
  }
}
