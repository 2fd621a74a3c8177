/**
 * Answers in advance. In a long row of tool calls, one answer also contains those of the next calls, so the agent asks
 * only once for hundreds of calls. It uses these answers as long as it continues as recorded. With its next question,
 * it names the last answer that it used.
 *
 *   known --a row begins, one client asks--> out --it asks again--> those up to the one that it names were used, the others not
 *                                             |--it asks a model, or ends--> its events say how many were used
 *                                             \--another client asks--> each may be used once; none are given out any more
 *
 * The agent always asks for the last call of a row. So while answers are out, any other question is a difference.
 */
import { hash } from 'node:crypto'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { inputText } from '@tacho/policy/input/input-text.ts'
import type { Ignored } from './compare.ts'
import { hasMask } from './recorded-calls.ts'
import type { TapeStep, ToolStep } from './tape.ts'

/** A shorter row is answered call by call. */
const ROW_MIN = 32
/** Characters of answers in advance. Clients read 1 MiB, which includes the answer that was asked for. */
const AHEAD_CHARS = 131_072
const AHEAD_STEPS = 500

type ToolCall = Pick<ToolStep, 'tool' | 'input'>

export class AnswersAhead {
  /** Tools with approvals: their calls are never answered in advance, because the host counts approvals. */
  readonly #approvedTools: ReadonlySet<string>
  readonly #out: ToolStep[] = []
  /** Steps that another client asked for while this client had their answers. */
  readonly #asked: ToolStep[] = []
  /** A step of #asked whose answer was used in advance as well. */
  usedTwice: ToolStep | undefined
  /** The client that has the answers in advance. */
  #client = ''
  #isShared = false
  /** How often a call was asked for or answered in advance, by the hash of its input. */
  readonly #known = new Map<string, number>()
  readonly #hashes = new WeakMap<ToolCall, string>()
  #isOver: boolean

  constructor(steps: readonly TapeStep[], ignored: Ignored) {
    this.#approvedTools = new Set(steps.flatMap((step) => (step.kind === 'approval' ? [step.tool] : [])))
    // Clients that have answers in advance compare whole inputs. So if some members are to be ignored, no answers are given in
    // advance.
    this.#isOver = ignored.some(([of]) => of !== 'model')
  }

  get isOut(): boolean {
    return this.#out.length > 0
  }

  mayBeUsed(step: TapeStep): boolean {
    return this.isOut && this.#out.includes(step as ToolStep)
  }

  /**
   * Handles a client's next question. @param lastUsed the last step whose answer it used. @returns the steps that it
   * used since its previous question.
   */
  askedAgain(client: string, lastUsed: number, asked: ToolCall): ToolStep[] {
    this.#know(asked)
    if (!this.isOut) return []
    if (client !== this.#client) this.#isShared = true
    if (this.#isShared) return []
    const used = this.#take(this.#out.findLastIndex(({ step }) => step <= lastUsed) + 1)
    if (this.isOut) this.#isOver = true
    this.#out.length = 0
    return used
  }

  /** Notes that a client asked for a step whose answer was given in advance. */
  forget(step: ToolStep): void {
    const at = this.#out.indexOf(step)
    if (at !== -1) this.#asked.push(...this.#out.splice(at, 1))
  }

  /** @param began the input hashes of all calls that began. @returns the steps whose answers were used. */
  usedInAll(began: Iterable<string>): ToolStep[] {
    const left = new Map<string, number>()
    for (const call of began) left.set(call, (left.get(call) ?? -(this.#known.get(call) ?? 0)) + 1)
    const isUsed = (step: ToolStep) => {
      const ofInput = this.#hashOf(step) ?? ''
      const calls = left.get(ofInput) ?? 0
      left.set(ofInput, calls - 1)
      return calls > 0
    }
    const next = this.#out.findIndex((step) => !isUsed(step))
    this.usedTwice = this.#asked.find(isUsed)
    return this.#take(next === -1 ? this.#out.length : next)
  }

  /**
   * @param row the next calls, if each must follow the previous one.
   * @returns JSON of their answers, for this client.
   */
  next(row: Iterable<ToolStep>, client: string, answerTo: (step: ToolStep) => object): string[] {
    if (this.#isOver || this.#isShared || this.isOut) return []
    const steps: ToolStep[] = []
    for (const step of row) {
      const isAsked = !isObject(step.input) || this.#approvedTools.has(step.tool) || hasMask(step.input)
      if (isAsked || steps.length > AHEAD_STEPS) break
      steps.push(step)
    }
    if (steps.length <= ROW_MIN) return []
    const texts: string[] = []
    let chars = 0
    for (const step of steps.slice(0, -1)) {
      const asked = this.#hashOf(step)
      const text = JSON.stringify({ ...answerTo(step), inputHash: asked, agent: step.agent })
      chars += text.length
      if (asked === undefined || chars > AHEAD_CHARS) break
      texts.push(text)
      this.#out.push(step)
    }
    this.#client = client
    return texts
  }

  #take(count: number): ToolStep[] {
    const used = this.#out.splice(0, count)
    for (const step of used) this.#know(step)
    return used
  }

  #know(call: ToolCall): void {
    const known = isObject(call.input) ? this.#hashOf(call) : undefined
    if (known !== undefined) this.#known.set(known, (this.#known.get(known) ?? 0) + 1)
  }

  /** The input hash, computed once for each step. */
  #hashOf(call: ToolCall): string | undefined {
    const known = this.#hashes.get(call)
    if (known !== undefined) return known
    const made = hashOf(call)
    if (made !== undefined) this.#hashes.set(call, made)
    return made
  }
}

/**
 * The policies' `inputHash`, computed by Node. Undefined for an input that no client sends: tapes may come from
 * strangers.
 */
function hashOf({ tool, input }: ToolCall): string | undefined {
  try {
    return hash('sha256', inputText(tool, input))
  } catch {
    return undefined
  }
}
