/**
 * The past of a recorded run, call by call, for simulations. The client judged before masking and shortening; the record may
 * have less. What depends on a part that the record does not have is unknown: a simulation counts it and does not guess.
 */
import { RecordedHistory } from '@tacho/policy/history/recorded-history.ts'
import { HISTORY_LABELS } from '@tacho/policy/history/run-history.ts'
import { namesTool, type ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import type { History } from '@tacho/policy/evaluation/value.ts'
import type { PastRow } from '../../storage/policies/policies.ts'

/** Marks that the SDKs write in place of content. */
const LEFT_OUT = /"tachoShortened"|\[masked\b|\[cut: |\[left out|\[unreadable|\[circular/

type Payload = Readonly<Record<string, unknown>>

/** The past before a call, and whether an evaluation read a part of it that is not recorded. */
export interface WatchedPast {
  readonly history: History
  isUnknown: boolean
}

export class RecordedPast {
  readonly #recorded: RecordedHistory
  readonly #rules: readonly ToolLabels[]
  /** Conditions that read `c.input` of a call. */
  readonly #readsInputs: boolean
  #now = 0
  /** Whether the record lacks values, labels or inputs of earlier calls. */
  #lacks = { values: false, labels: false, inputs: false }

  /** @param condition its source */
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
      payloadDamaged === true || text === '{}' || LEFT_OUT.test(text) || lacksContent(eventType, payload)
    if (isPartial && eventType !== 'POLICY_DECISION') this.#lacks.values = true
    if (isPartial && eventType === 'TOOL_CALL') {
      const tool = { name: textOf(payload['toolName']), server: textOf(payload['toolServer']) }
      this.#lacks.inputs = true
      this.#lacks.labels ||= this.#rules.some((rule) => rule.when !== undefined && namesTool(rule, tool))
      // Nobody knows which tool it was.
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
  return input !== undefined && !LEFT_OUT.test(JSON.stringify(input) ?? '')
}

/** A client that records metadata only, or whose messages nobody recorded. */
function lacksContent(eventType: string, payload: Payload): boolean {
  if (eventType === 'LLM_CALL') return !('messages' in payload) && !('output' in payload)
  if (eventType === 'USER_INPUT') return !('text' in payload) && !('content' in payload)
  if (eventType !== 'TOOL_CALL' || payload['outcome'] === 'never_ran') return false
  return !('output' in payload) && !('error' in payload)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
