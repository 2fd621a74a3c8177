/**
 * Whether a value went from one tool to another: "in 30 days, no value from read_mail reached send_*". The values of an input
 * are looked up in the index of earlier outputs, as `origin` does it. A value that the user said too is the user's.
 */
import { HISTORY_LABELS } from '@tacho/policy/history/run-history.ts'
import { labelsOfCall, namesTool, type ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import type { FlowQuestion } from '@tacho/contract/policies/simulation.ts'
import type { RecordedCall } from './recorded-call.ts'
import type { WatchedPast } from './recorded-past.ts'

/** No label that a rule can give: those have no space. */
const FLOW_LABEL = 'from the tool'
const LEAVES_MAX = 2_000
/** Shorter texts and numbers occur by chance. */
const VALUE_CHARS_MIN = 5
/** A longer text can have a value or a passage of an output inside. */
const WHOLE_WORDS_MAX = 8
const PASSAGE_WORDS = 6
/** Addresses, numbers, names of files, and long words: others are in many texts. */
const SPECIFIC = /[\d@]|\w[./:_-]\w|\w{10}/u
const LOOKUPS_MAX = 4_000

export type FlowTrial = ReturnType<typeof flowTrial>

export function flowTrial({ fromTool, fromLabel, toTool, toLabel }: FlowQuestion, rules: readonly ToolLabels[]) {
  const label = fromLabel ?? FLOW_LABEL
  return {
    /** With the source of the question as a label. */
    rules: fromTool === undefined ? rules : [...rules, { tool: fromTool, output: [FLOW_LABEL] }],
    /** Whether the call is one that the value may reach. */
    isAsked(call: RecordedCall, now: number): boolean {
      const tool = {
        name: call.toolName,
        server: call.server,
        input: call.input as Record<string, unknown> | undefined,
      }
      if (toTool !== undefined) return namesTool({ tool: toTool }, tool)
      return labelsOfCall(rules, { tool, now }).does.includes(toLabel ?? '')
    },
    /** Null: a part of the input or of the past is not recorded, and the recorded part has no such value. */
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

/** Whole short values; of longer texts, words like addresses and numbers, and passages. */
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
