/** Expectations of a tape's test, in the YAML file beside it, and the check of a replay against them. */
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { parseDocument } from 'yaml'
import { differencesOf, NOTHING_IGNORED, recordedMessages } from './compare.ts'
import { shown } from './cursor.ts'
import type { ModelStep, Tape, TapeStep, ToolStep } from './tape.ts'

export interface Expectations {
  mode: 'strict' | 'tools'
  ignore: string[]
  readOnly: string[]
  /** Default: the outcome in the tape. */
  outcome?: string
  /** Names of all called tools, in this order. */
  tools?: string[]
  never: string[]
  /** Calls that must occur, with inputs that contain these members. */
  calls: { tool: string; input: unknown }[]
  /** Texts that the last answer must contain. */
  answer: string[]
  budget: { tokens?: number; cost?: number; seconds?: number }
}

const MEMBERS = ['mode', 'ignore', 'readOnly', 'outcome', 'tools', 'never', 'calls', 'answer', 'budget']
const BUDGETS = ['tokens', 'cost', 'seconds']

export const NO_EXPECTATIONS: Expectations = {
  mode: 'strict',
  ignore: [],
  readOnly: [],
  never: [],
  calls: [],
  answer: [],
  budget: {},
}

/** @throws Error that names the invalid member. */
export function readExpectations(text: string): Expectations {
  const document = parseDocument(text, { prettyErrors: false })
  const [error] = document.errors
  if (error) throw new Error(error.message)
  let root: unknown
  try {
    root = (document.toJS({ maxAliasCount: 0 }) as unknown) ?? {}
  } catch {
    throw new Error('must not have an alias such as *name')
  }
  if (!isObject(root)) throw new Error('must be a mapping')
  refuseUnknown(root, MEMBERS, '')
  const { mode = 'strict', outcome, tools, calls = [], answer = [], budget = {} } = root
  if (mode !== 'strict' && mode !== 'tools') throw new Error('mode must be strict or tools')
  if (outcome !== undefined && typeof outcome !== 'string') throw new Error('outcome must be a text')
  if (!isObject(budget)) throw new Error('budget must be a mapping')
  refuseUnknown(budget, BUDGETS, ' of budget')
  for (const [name, value] of Object.entries(budget)) {
    if (typeof value !== 'number' || !(value >= 0)) throw new Error(`budget.${name} must be a number from 0`)
  }
  const isCall = (call: unknown) => isObject(call) && typeof call['tool'] === 'string'
  if (!Array.isArray(calls) || !calls.every(isCall)) throw new Error('calls must be a list of { tool, input }')
  return {
    mode,
    ...(outcome !== undefined && { outcome }),
    ...(tools !== undefined && { tools: texts(tools, 'tools') }),
    ignore: texts(root['ignore'] ?? [], 'ignore'),
    readOnly: texts(root['readOnly'] ?? [], 'readOnly'),
    never: texts(root['never'] ?? [], 'never'),
    calls: calls as Expectations['calls'],
    answer: texts(typeof answer === 'string' ? [answer] : answer, 'answer'),
    budget,
  }
}

function refuseUnknown(value: object, known: readonly string[], place: string): void {
  const other = Object.keys(value).find((name) => !known.includes(name))
  if (other !== undefined) throw new Error(`unknown member ${JSON.stringify(other)}${place}; use ${known.join(', ')}`)
}

function texts(value: unknown, name: string): string[] {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value
  throw new Error(`${name} must be a list of texts`)
}

export interface Replayed {
  steps: readonly TapeStep[]
  outcome: string
  milliseconds: number
}

/** Lists unfulfilled expectations, one sentence for each. @param spent null: not known. */
export function unfulfilled(
  expected: Expectations,
  tape: Tape,
  { steps, outcome, milliseconds }: Replayed,
  spent: { tokens: number | null; cost: number | null },
): string[] {
  const { tools, never, calls, answer, budget } = expected
  const faults: string[] = []
  const check = (isFulfilled: boolean, sentence: string) => void (isFulfilled || faults.push(sentence))
  const wanted = expected.outcome ?? tape.head.outcome
  check(outcome === wanted, `the outcome is ${outcome}, not ${wanted}`)
  const ran = steps.filter((step): step is ToolStep => step.kind === 'tool' && step.outcome !== 'never_ran')
  const names = ran.map(({ tool }) => tool)
  if (tools) check(names.join('\n') === tools.join('\n'), `the tools are ${listed(names)}, not ${listed(tools)}`)
  for (const tool of never) check(!names.includes(tool), `${tool} was called`)
  for (const { tool, input } of calls) {
    const isThere = ran.some((step) => step.tool === tool && contains(step.input, input))
    check(isThere, `${tool} was not called with ${shown(input ?? {})}`)
  }
  const models = steps.filter((step): step is ModelStep => step.kind === 'model')
  const lastAnswer = JSON.stringify(recordedMessages(models.at(-1)?.output).map(({ content }) => content))
  for (const text of answer)
    check(lastAnswer.includes(JSON.stringify(text).slice(1, -1)), `the answer does not say ${shown(text)}`)
  const { tokens, cost, seconds = Infinity } = budget
  const within = (used: number | null, most: number | undefined, text: string, lacks: string) => {
    if (most === undefined) return
    check(used === null || used <= most, `${text.replace('#', String(used))} more than ${most}`)
    check(used !== null, `the budget of ${lacks}`)
  }
  within(spent.tokens, tokens, '# tokens are', 'tokens cannot hold: a call of a model has no usage')
  within(
    spent.cost,
    cost,
    'a cost of # is',
    'cost cannot hold: a call of a model has no usage, or its model no known price',
  )
  check(milliseconds <= seconds * 1_000, `${milliseconds / 1_000} seconds are more than ${seconds}`)
  return faults
}

const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))

/** Whether a value equals the wanted one. Objects may have more members. */
function contains(value: unknown, wanted: unknown): boolean {
  if (isObject(wanted)) {
    return isObject(value) && Object.entries(wanted).every(([name, one]) => contains(value[name], one))
  }
  return wanted === undefined || differencesOf(value, wanted, ['input'], NOTHING_IGNORED).length === 0
}
