/**
 * The past of a recorded run, call by call, for simulations. The client judged before masking and shortening, so the
 * record may have less. A result that depends on a missing part is unknown: a simulation counts it and does not guess.
 */
import { RecordedHistory } from '@tacho/policy/history/recorded-history.ts'
import { HISTORY_LABELS } from '@tacho/policy/history/run-history.ts'
import { namesTool, type ToolLabels, labelsOfCall } from '@tacho/policy/history/tool-labels.ts'
import type { History } from '@tacho/policy/evaluation/value.ts'
import type { PastRow } from '../../storage/policies/policies.ts'
import type { FlowQuestion, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import { CONTENT_MARK } from '../approvals/recorded-input.ts'
import type { RecordedCall } from './recorded-call.ts'
import { toolNameOf } from '@tacho/policy/language/tool-name.ts'

type Payload = Readonly<Record<string, unknown>>

/** The past before a call, and whether an evaluation read a part of it that is not recorded. */
interface WatchedPast {
  readonly history: History
  isUnknown: boolean
}

export class RecordedPast {
  readonly #recorded: RecordedHistory
  readonly #rules: readonly ToolLabels[]
  /** Whether the condition reads `c.input` of an earlier call. */
  readonly #readsInputs: boolean
  #now = 0
  /** Whether the record lacks values, labels or inputs of earlier calls. */
  #lacks = { values: false, labels: false, inputs: false }

  /** @param condition its source text */
  constructor(rules: readonly ToolLabels[], condition: string) {
    this.#rules = rules
    this.#readsInputs = condition.replaceAll('tool.input', '').includes('input')
    this.#recorded = new RecordedHistory(
      () => rules,
      () => this.#now,
    )
  }

  see({ eventType, time, payload: text, payloadDamaged }: PastRow, payload: Payload): void {
    this.#now = time
    const isPartial =
      payloadDamaged === true || text === '{}' || CONTENT_MARK.test(text) || lacksContent(eventType, payload)
    if (isPartial && eventType !== 'POLICY_DECISION') this.#lacks.values = true
    if (isPartial && eventType === 'TOOL_CALL') {
      const tool = { name: textOf(payload['toolName']), server: textOf(payload['toolServer']) }
      this.#lacks.inputs = true
      this.#lacks.labels ||= this.#rules.some((rule) => rule.when !== undefined && namesTool(rule, tool))
      // Any rule may apply to an unknown tool.
      this.#lacks.labels ||= tool.name === '' && this.#rules.length > 0
    }
    this.#recorded.see(eventType, payload)
  }

  watched(): WatchedPast {
    const { history } = this.#recorded
    const { values, inputs, labels } = this.#lacks
    const isLabelMissing = (): boolean => labels || history.labels.includes(HISTORY_LABELS.unknown)
    const areCallsMissing = labels || (inputs && this.#readsInputs)
    const watched: WatchedPast = {
      isUnknown: false,
      history: {
        get labels() {
          watched.isUnknown ||= isLabelMissing()
          return history.labels
        },
        get calls() {
          watched.isUnknown ||= areCallsMissing
          return history.calls
        },
        callsOf(tool) {
          watched.isUnknown ||= areCallsMissing
          return history.callsOf(tool)
        },
        origin(value) {
          const labelsOfValue = history.origin(value)
          watched.isUnknown ||= values || labels || labelsOfValue.includes(HISTORY_LABELS.unknown)
          return labelsOfValue
        },
      },
    }
    return watched
  }
}

/** Whether the record has the input of a call as the client judged it. */
export function isInputWhole(input: unknown): boolean {
  return input !== undefined && !CONTENT_MARK.test(JSON.stringify(input) ?? '')
}

/** True for a client that records only metadata, or no messages. */
function lacksContent(eventType: string, payload: Payload): boolean {
  if (eventType === 'LLM_CALL') return !('messages' in payload) && !('output' in payload)
  if (eventType === 'USER_INPUT') return !('text' in payload) && !('content' in payload)
  if (eventType !== 'TOOL_CALL' || payload['outcome'] === 'never_ran') return false
  return !('output' in payload) && !('error' in payload)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Contains spaces, so that no rule can define the same label. */
const FLOW_LABEL = 'from the tool'
const LEAVES_MAX = 2_000
/** Shorter texts and numbers occur by chance. */
const VALUE_CHARS_MIN = 5
/** Longer texts are also searched for values and passages of an output. */
const WHOLE_WORDS_MAX = 8
const PASSAGE_WORDS = 6
/** Specific enough to search for: addresses, numbers, file names, and long words. Others occur in many texts. */
const SPECIFIC = /[\d@]|\w[./:_-]\w|\w{10}/u
const LOOKUPS_MAX = 4_000

export type FlowTrial = ReturnType<typeof flowTrial>

/**
 * Whether a value went from one tool to another: "in 30 days, no value from read_mail reached send_*". The values of an
 * input are looked up in the index of earlier outputs, as in `origin`. A value that the user also wrote counts as the
 * user's.
 */
export function flowTrial({ fromTool, fromLabel, toTool, toLabel }: FlowQuestion, rules: readonly ToolLabels[]) {
  const label = fromLabel ?? FLOW_LABEL
  return {
    /** Adds the question's source as a label. */
    rules: fromTool === undefined ? rules : [...rules, { tool: fromTool, output: [FLOW_LABEL] }],
    /** Whether the question asks if the value reached this call. */
    isAsked(call: RecordedCall, now: number): boolean {
      const tool = {
        name: call.toolName,
        server: call.server,
        input: call.input as Record<string, unknown> | undefined,
      }
      if (toTool !== undefined) return namesTool({ tool: toTool }, tool)
      return labelsOfCall(rules, { tool, now }).does.includes(toLabel ?? '')
    },
    /**
     * Null: unknown, because a part of the input or of the past is not recorded, and the recorded part has no such
     * value.
     */
    reached(input: unknown, isInputWhole: boolean, past: WatchedPast): boolean | null {
      let lookups = 0
      for (const value of valuesIn(input)) {
        if (++lookups > LOOKUPS_MAX) return null
        const origin = past.history.origin(value)
        if (origin.includes(label) && !origin.includes(HISTORY_LABELS.user)) return true
      }
      return isInputWhole && !past.isUnknown ? false : null
    },
  }
}

/** Short values as a whole; from longer texts, passages and words such as addresses and numbers. */
function* valuesIn(input: unknown): Generator<string | number> {
  const waiting: unknown[] = [input]
  let leaves = 0
  while (waiting.length > 0 && leaves < LEAVES_MAX) {
    const value = waiting.pop()
    if (typeof value === 'object' && value !== null) {
      for (const inner of Object.values(value).slice(0, LEAVES_MAX)) waiting.push(inner)
      continue
    }
    leaves += 1
    if (typeof value === 'number' && String(value).length >= VALUE_CHARS_MIN) yield value
    if (typeof value !== 'string' || value.trim().length < VALUE_CHARS_MIN) continue
    const words = value.split(/\s+/u).filter((word) => word !== '')
    if (words.length > 1 && words.length <= WHOLE_WORDS_MAX) yield value
    yield* words.filter((word) => word.length >= VALUE_CHARS_MIN && SPECIFIC.test(word))
    for (let at = 0; at + PASSAGE_WORDS <= words.length; at += PASSAGE_WORDS / 2) {
      yield words.slice(at, at + PASSAGE_WORDS).join(' ')
    }
  }
}

const TOOLS_COUNTED = 1_000
const TOOLS_LISTED = 20

type Coverage = Omit<NonNullable<SimulationResult['past']>, 'unknown'>

interface CalledTool {
  name: string
  server: string | null
}

/**
 * Reports which of the called tools have labels. A tool without labels is neither a source nor a sink, whatever it
 * does.
 */
export function labelCoverage(rules: readonly ToolLabels[]) {
  const tools = new Map<string, { isLabelled: boolean; calls: number }>()
  let calls = 0
  let labelledCalls = 0
  return {
    count(tool: CalledTool): void {
      calls += 1
      const { server, own } = toolNameOf(tool.name, tool.server ?? '')
      const key = server === '' ? own : `${server} ${own}`
      let counted = tools.get(key)
      if (counted === undefined) {
        counted = { isLabelled: rules.some((rule) => namesTool(rule, tool)), calls: 0 }
        // Beyond this number of tools, only the calls are counted.
        if (tools.size < TOOLS_COUNTED) tools.set(key, counted)
      }
      counted.calls += 1
      if (counted.isLabelled) labelledCalls += 1
    },
    found(): Coverage {
      const unlabelled = [...tools]
        .filter(([, { isLabelled }]) => !isLabelled)
        .sort(([, a], [, b]) => b.calls - a.calls)
      return {
        tools: tools.size,
        labelledTools: tools.size - unlabelled.length,
        calls,
        labelledCalls,
        unlabelled: unlabelled.slice(0, TOOLS_LISTED).map(([key]) => key),
      }
    },
  }
}
