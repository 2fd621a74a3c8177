/**
 * Answers from a tape, by content. A step is ready when every step that ended before its begin was asked for. Calls
 * that one answer of a model asked for may come in any order.
 *
 *   following --an equal request or call--> following
 *     |--strict: another one, or the end while steps are left--> stopped
 *     |--tools: a call that the tape does not have, no stub, not read-only--> stopped
 *     \--from N: step N is next--> live: models and tools are the agent's own
 */
import { AnswersAhead } from './answers-ahead.ts'
import { changedText, requestDifferences, shortPair, type Difference, type Ignored } from './compare.ts'
import { RecordedCalls, type AskedCall } from './recorded-calls.ts'
import type { ModelStep, Tape, TapeStep, ToolStep } from './tape.ts'

export type ReplayMode = 'strict' | 'tools'

export interface CursorOptions {
  mode: ReplayMode
  ignored: Ignored
  /** The tape answers no step from this one on. */
  from?: number | undefined
  /** Tools that may run for real if the tape does not have a call. */
  readOnly?: ReadonlySet<string>
  /** Answers for calls that the tape does not have, by tool. */
  stubs?: ReadonlyMap<string, unknown>
}

/** The step at which the agent left the tape. */
export interface Departure {
  /** The expected step; one more than the last step at the end of the tape. */
  step: number
  sentence: string
  differences: Difference[]
}

export type ToolAnswer =
  | { answer: 'returned'; output: unknown; step?: number }
  | { answer: 'failed'; error: unknown; step: number }
  | { answer: 'run' }
  | { answer: 'stop'; message: string }

export type ModelAnswer = { answer: 'tape'; step: ModelStep } | { answer: 'live' } | { answer: 'stop'; message: string }

type AskedStep = ModelStep | ToolStep

export class Cursor {
  readonly #options: CursorOptions
  readonly #steps: readonly TapeStep[]
  /** Steps that were not asked for yet, sorted by their end. */
  readonly #left: AskedStep[]
  /** The earliest begin of the step with this index and of all later steps. */
  readonly #begins: number[]
  #first = 0
  readonly #used = new Set<AskedStep>()
  /** Steps inside guarded calls, by the step of the call. */
  readonly #inside: ReadonlyMap<number | undefined, AskedStep[]>
  readonly #calls: RecordedCalls
  readonly #ahead: AnswersAhead
  readonly #asksModels: boolean
  /** The model call that failed last. Its client may retry it. */
  #failed: ModelStep | undefined
  departure: Departure | undefined

  constructor({ steps }: Pick<Tape, 'steps'>, options: CursorOptions) {
    this.#options = options
    this.#steps = steps
    this.#asksModels = options.mode === 'strict' || options.from !== undefined
    const asked = steps.filter(isAsked).filter(({ kind }) => this.#asksModels || kind === 'tool')
    this.#left = asked.toSorted((a, b) => a.to - b.to)
    let begin = Infinity
    this.#begins = this.#left.map(({ from }) => from)
    for (let at = this.#begins.length; at-- > 0;) this.#begins[at] = begin = Math.min(begin, this.#begins[at] ?? begin)
    this.#inside = Map.groupBy(asked, ({ within }) => within)
    const calls = asked.filter((step) => step.kind === 'tool').toSorted((a, b) => a.step - b.step)
    this.#calls = new RecordedCalls(calls, options.ignored)
    this.#ahead = new AnswersAhead(steps, options.ignored)
  }

  /**
   * A model request shows that the agent left the tape, but the step is unknown until it is known which answers were
   * used.
   */
  get isBeforeModel(): boolean {
    return this.#asksModels && this.#ahead.isOut && !this.departure
  }

  get isLive(): boolean {
    const { from } = this.#options
    return from !== undefined && (this.#next()?.step ?? Infinity) >= from
  }

  /** Answers a model call. `messages`: as integrations record them. */
  model(messages: unknown): ModelAnswer {
    if (this.departure) return { answer: 'stop', message: this.departure.sentence }
    if (this.isLive) return { answer: 'live' }
    if (!this.#asksModels) return { answer: 'live' }
    const isEqual = (step: ModelStep) => this.#modelDifferences(step, messages).length === 0
    if (this.#failed && isEqual(this.#failed)) return { answer: 'tape', step: this.#failed }
    const ready = this.#ready().filter((step) => step.kind === 'model')
    const step = ready.find(isEqual)
    if (step) {
      this.#use(step)
      this.#failed = step.error === undefined ? undefined : step
      return { answer: 'tape', step }
    }
    const next = this.#next()
    const [nearest = next] = next?.kind === 'model' ? [next] : ready
    const differences = nearest?.kind === 'model' ? this.#modelDifferences(nearest, messages) : []
    const changed = nearest?.kind === 'model' && changedText(nearest.messages, messages, this.#options.ignored)
    return this.#stop(nearest, `the agent asks a model${changed ? ` with ${changed}` : ''}`, differences)
  }

  /** @param lastUsed the last step whose answer in advance the client used. */
  tool({ tool, input, agent }: AskedCall, { client = '', lastUsed = 0 } = {}): ToolAnswer {
    for (const used of this.#ahead.askedAgain(client, lastUsed, { tool, input })) this.#use(used)
    if (this.departure) return { answer: 'stop', message: this.departure.sentence }
    if (this.isLive) return { answer: 'run' }
    const isStrict = this.#options.mode === 'strict'
    const mayCome = (one: ToolStep) => !isStrict || this.#isReady(one)
    const { step, hasEqual } = this.#calls.find({ tool, input, agent }, mayCome)
    if (step) {
      this.#use(step)
      this.#ahead.forget(step)
      return recordedAnswer(step)
    }
    const { stubs, readOnly } = this.#options
    if (!isStrict) {
      if (stubs?.has(tool)) return { answer: 'returned', output: stubs.get(tool) }
      if (readOnly?.has(tool)) return { answer: 'run' }
    }
    // Compare with the expected step that explains the difference best: a call of the same tool, else the next step.
    const sameTool = this.#left
      .filter((one) => one.kind === 'tool' && one.tool === tool && !this.#used.has(one))
      .toSorted((a, b) => a.step - b.step)
    const nearest = (!hasEqual && sameTool.find((one) => this.#isReady(one))) || this.#next()
    const differences = nearest?.kind === 'tool' && nearest.tool === tool ? this.#calls.differences(nearest, input) : []
    return this.#stop(nearest, `the agent asks ${tool} ${shown(input)}`, differences)
  }

  /** Answers to the following calls, as JSON, for a client that then need not ask for them. */
  ahead(client: string): string[] {
    return this.departure ? [] : this.#ahead.next(this.#row(), client, recordedAnswer)
  }

  /**
   * @param began input hashes of all calls that began. One of them that did not ask the host used an answer in advance.
   */
  usedAhead(began: Iterable<string>): void {
    for (const used of this.#ahead.usedInAll(began)) this.#use(used)
    const twice = this.#ahead.usedTwice
    if (twice && !this.#mayRepeat(twice)) this.#stop(twice, 'two clients of the agent asked it', [])
  }

  /** Whether another call of this tool would get a stub, or run. */
  #mayRepeat({ tool }: ToolStep): boolean {
    const { mode, stubs, readOnly } = this.#options
    return mode !== 'strict' && (stubs?.has(tool) === true || readOnly?.has(tool) === true)
  }

  /** Handles the end of the agent. */
  end(outcome: string): void {
    if (this.departure || this.#options.mode !== 'strict' || this.isLive) return
    const left = this.#next()
    const end = this.#steps.findLast(({ kind }) => kind === 'end')
    if (left) this.#stop(left, `the agent ended with ${outcome}`, [])
    else if (end?.kind === 'end' && end.status !== outcome) {
      const differences = [{ path: 'status', tape: end.status, now: outcome }]
      this.depart(end, `the agent ended with ${outcome}`, differences)
    }
  }

  depart(step: TapeStep | undefined, now: string, differences: Difference[]): void {
    const number = step?.step ?? this.#steps.length + 1
    const tape = step ? `the tape has ${stepText(step)}` : 'the tape has ended'
    const details = differences.map((one) => `\n  ${differenceText(one)}`).join('')
    this.departure ??= { step: number, sentence: `step ${number}: ${tape}, ${now}${details}`, differences }
  }

  #stop(step: AskedStep | undefined, now: string, differences: Difference[]): { answer: 'stop'; message: string } {
    this.depart(step, now, differences)
    return { answer: 'stop', message: this.departure?.sentence ?? '' }
  }

  #use(step: AskedStep): void {
    // A stranger's tape may contain circular nesting.
    const answered = [step]
    for (let one = answered.pop(); one; one = answered.pop()) {
      if (this.#used.has(one)) continue
      this.#used.add(one)
      if (one.kind === 'tool') this.#calls.use(one)
      for (const inner of this.#inside.get(one.step) ?? []) answered.push(inner)
    }
    while (this.#first < this.#left.length && this.#used.has(this.#left[this.#first] as AskedStep)) this.#first++
  }

  /** The next calls, as long as each must follow the previous one. */
  *#row(): Iterable<ToolStep> {
    for (let at = this.#first; at < this.#left.length; at++) {
      const step = this.#left[at] as AskedStep
      const isNext = step.kind === 'tool' && step.within === undefined && !this.#used.has(step)
      if (!isNext || (this.#begins[at + 1] ?? Infinity) <= step.to || step.step >= (this.#options.from ?? Infinity))
        return
      yield step
    }
  }

  /** The first step that was not asked for. */
  #next(): AskedStep | undefined {
    let next: AskedStep | undefined
    for (let at = this.#first; at < this.#left.length; at++) {
      const step = this.#left[at] as AskedStep
      if (next && at - this.#first > LOOK_AHEAD) break
      if (!this.#used.has(step) && (!next || step.step < next.step)) next = step
    }
    return next
  }

  #ready(): AskedStep[] {
    const ready: AskedStep[] = []
    const first = this.#left[this.#first]
    for (let at = this.#first; at < this.#left.length; at++) {
      const step = this.#left[at] as AskedStep
      if (!this.#used.has(step) && this.#isReady(step)) ready.push(step)
      // Stop searching: a call that ends much later usually began later too. A longer call is found by its tool or
      // request.
      if (first && ready.length > 0 && at - this.#first > LOOK_AHEAD) break
    }
    return ready.sort((a, b) => a.step - b.step)
  }

  /** Whether the agent has asked for each step that ended before this one began. */
  #isReady(step: AskedStep): boolean {
    for (let at = this.#first; at < this.#left.length; at++) {
      const earlier = this.#left[at] as AskedStep
      if (earlier.to >= step.from) return true
      if (earlier === step || this.#used.has(earlier) || isTogether(earlier, step)) continue
      if (this.#ahead.mayBeUsed(earlier)) continue
      // This step belongs to an earlier call, which must come first.
      if (earlier.within !== undefined) continue
      return false
    }
    return true
  }

  #modelDifferences(step: ModelStep, messages: unknown): Difference[] {
    return requestDifferences(step.messages, messages, this.#options.ignored)
  }
}

const LOOK_AHEAD = 1_000

function recordedAnswer({ step, output = null, error }: ToolStep): ToolAnswer {
  return error === undefined ? { answer: 'returned', output, step } : { answer: 'failed', error, step }
}

function isAsked(step: TapeStep): step is AskedStep {
  return step.kind === 'model' || (step.kind === 'tool' && step.outcome !== 'never_ran' && !step.unguarded)
}

function isTogether(a: AskedStep, b: AskedStep): boolean {
  return a.kind === 'tool' && b.kind === 'tool' && a.askedBy !== undefined && a.askedBy === b.askedBy
}

const SHOWN_CHARS = 200

export function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text
}

export function stepText(step: TapeStep): string {
  switch (step.kind) {
    case 'model':
      return 'a call of a model'
    case 'tool':
      return `${step.tool} ${shown(step.input)}`
    case 'decision':
      return `${step.action} of ${step.tool}`
    case 'approval':
      return `${step.status} of ${step.tool}`
    case 'input':
      return `the input ${shown(step.text)}`
    case 'end':
      return `the end ${step.status}`
  }
}

export function differenceText({ path, tape, now }: Difference): string {
  const [before, after] = typeof tape === 'string' && typeof now === 'string' ? shortPair(tape, now) : [tape, now]
  return `${path}: the tape has ${shown(before)}, now it is ${shown(after)}`
}
