import type { RecordInReview } from '../../storage/issues/issue-records.ts'
import { isUuid } from '../../storage/engine/uuid.ts'

const TITLE_CHARS = 200

type Reported = Pick<RecordInReview, 'detectionType' | 'policyId' | 'payload'>

/** Made from the payload of the first detection, because the facts are in lower case. */
export function issueTitle({ detectionType, policyId, payload }: Reported): string {
  const { toolName, tools, reasonCode, model } = JSON.parse(payload) as Record<string, unknown>
  const reason = said(typeof reasonCode === 'number' ? String(reasonCode) : reasonCode)
  const several = Array.isArray(tools) ? tools.flatMap((one) => said(one) ?? []).join(', ') : ''
  const tool = said(toolName) ?? (several === '' ? null : several)
  const known = KNOWN.get(detectionType.trim().toUpperCase())
  const of = { tool, reason, policy: policyId !== null && !isUuid(policyId) ? said(policyId) : null }
  const title =
    WITHOUT_TOOL.get(detectionType) ||
    (known && tool !== null && known({ ...of, tool })) ||
    otherTitle(spoken(detectionType), { ...of, model: said(model) })
  return title.length <= TITLE_CHARS ? title : `${title.slice(0, TITLE_CHARS - 1).toWellFormed()}…`
}

interface TitleFacts {
  tool: string
  reason: string | null
  policy: string | null
}

const because = (reason: string | null): string => (reason === null ? '' : `: ${spoken(reason)}`)
const by = (policy: string | null): string => (policy === null ? '' : ` by ${policy}`)

const WITHOUT_TOOL = new Map([['REPOSITORY_STARTS', 'A repository starts or sets what no policy sees']])

const KNOWN = new Map<string, (facts: TitleFacts) => string>([
  [
    'TOOL_FAILED',
    ({ tool, reason }) => (isClass(reason) ? `${reason} in ${tool}` : `${tool} failed${because(toolReason(reason))}`),
  ],
  [
    'TOOL_BLOCKED',
    ({ tool, reason, policy }) =>
      `${tool} was blocked${by(policy ?? (reason === 'policy' ? 'a policy' : null))}${because(blockReason(reason))}`,
  ],
  ['LOOP_DETECTED', ({ tool }) => `${tool} is called again and again with the same input`],
  ['BUDGET_EXCEEDED', ({ tool, reason }) => `${tool} is over the budget of the run${because(reason)}`],
  ['INPUT_CHANGED', ({ tool }) => `${tool} ran with another input than was judged`],
  ['TOOL_NOT_JUDGED', ({ tool }) => `${tool} ran without a decision`],
  ['TOOL_RAN_REFUSED', ({ tool }) => `${tool} ran although it was refused`],
  ['TOOL_ADDED', ({ tool }) => `The tool ${tool} was added`],
  ['TOOL_CHANGED', ({ tool }) => `The definition of ${tool} changed`],
])

function otherTitle(
  what: string,
  { tool, reason, policy, model }: Omit<TitleFacts, 'tool'> & { tool: string | null; model: string | null },
): string {
  const subject = what === '' ? 'Detection' : `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`
  const place = tool === null ? '' : ` in ${tool}`
  return `${subject}${place}${model === null ? '' : ` with ${model}`}${by(policy)}${because(reason)}`
}

function said(value: unknown): string | null {
  if (typeof value !== 'string') return null
  return value.toWellFormed().trim().replaceAll(/\s+/g, ' ') || null
}

/** `TimeoutError`, not `ECONNREFUSED` or `tool_error`. */
const isClass = (reason: string | null): reason is string =>
  reason !== null && /^[A-Z][a-z]\w*$|^[A-Z]+[a-z]\w*$/.test(reason)

const toolReason = (reason: string | null) => (reason === 'tool_error' ? null : reason)
const blockReason = (reason: string | null) => (reason === 'blocked' || reason === 'policy' ? null : reason)

/** `PROMPT_INJECTION` and `toolCalls` as words. Codes without a separator stay, such as `ECONNREFUSED`. */
function spoken(code: string): string {
  const words = code
    .trim()
    .replaceAll(/[_\s]+/g, ' ')
    .trim()
  if (/^[A-Z0-9 ]+$/.test(words)) return words.includes(' ') ? words.toLowerCase() : words
  return /^[a-z]+(?:[A-Z][a-z]+)+$/.test(words)
    ? words.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    : words
}
