/**
 * Reads an input once, as plain JSON to which nothing else refers. Policies judge this value. It is hashed, shown to
 * the approver and recorded, and the tool gets a copy of it.
 */
import { copyPlain } from '../delivery/detach.ts'
import { CUT_MARK, snapshotOf, type Json } from '../recording/json.ts'
import { LIMITS } from '../limits.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { GuardRules } from './rules.ts'

export interface TakenInput {
  /** The input for the tool. Nothing else refers to it, unless the input could not be read. */
  readonly given: unknown
  /** Null if the input cannot be read. Texts, numbers and lists are judged as `{ input: … }`. */
  readonly judged: Readonly<Record<string, unknown>> | null
  /** Description of the problem, without any content of the input. */
  readonly problem: string | null
  /** The judged value. For an unreadable input, a copy for people, with marks in place of what JSON cannot hold. */
  readonly recorded: unknown
}

export interface TakenCall {
  readonly toolName: string
  readonly input: TakenInput
  readonly riskSignals: readonly string[]
  readonly annotations: Readonly<Record<string, unknown>> | undefined
  readonly server: string | undefined
  readonly rules: GuardRules
  readonly signal: StopSignal | undefined
  /** Set if the tool could get another input than the one that was judged. */
  readonly readAgain?: (() => unknown) | undefined
  readonly key: string | undefined
  /** The model's id of the call, if it is not the key. */
  readonly toolCallId?: string | undefined
  /** Arguments with which the tool is called again after a handover. */
  readonly args: readonly unknown[]
}

/**
 * @param rawInput what `detached` returned.
 * @param hasDates whether a Date counts as its ISO text.
 */
export function takeInput(rawInput: unknown, hasDates = false): TakenInput {
  try {
    // The tool gets this copy: reading an object of the host twice could give two values.
    const plainCopy = copyPlain(rawInput ?? {})
    const copied = copyPlain(plainCopy, hasDates ? (date) => date.toISOString() : refuseDate)
    const isWhole = typeof copied === 'object' && !Array.isArray(copied)
    const judged = (isWhole ? copied : { input: copied }) as Record<string, unknown>
    return {
      given: rawInput === undefined || rawInput === null ? rawInput : plainCopy,
      judged,
      problem: null,
      recorded: judged,
    }
  } catch (error) {
    const problem = typeof error === 'string' ? error : 'cannot be read'
    const { text } = snapshotOf(rawInput, LIMITS.payloadDepthLevels)
    return { given: rawInput, judged: null, problem, recorded: JSON.parse(text.replaceAll(CUT_MARK, '…')) as Json }
  }
}

/** The default of `input`: the only argument if it is an object. */
export function inputOfArguments(...args: unknown[]): unknown {
  const [first] = args
  const isObject = typeof first === 'object' && first !== null && !Array.isArray(first)
  if (args.length === 1 && isObject) return first
  return args.length === 0 ? {} : { args }
}

function refuseDate(): never {
  throw 'holds a Date'
}
