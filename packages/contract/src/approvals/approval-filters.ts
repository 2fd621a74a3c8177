/** The filters of the list of approvals, each one row; see RUN_FILTERS. */
import { LIMITS } from '../engine/limits.ts'
import { APPROVAL_STATUSES } from '../engine/words.ts'
import type { FilterRow } from '../web/filter.ts'

const text = { kind: 'text', max: LIMITS.textChars } as const
const inHindsight = { ...text, hindsight: true } as const

/** `hindsight`: the list of closed requests in hindsight has this filter too. */
type ApprovalFilterRow = FilterRow & { hindsight?: true }

export const APPROVAL_FILTERS = {
  toolName: {
    ...inHindsight,
    describes: 'Protected tool',
    flag: ['--tool <name>', 'approvals of one tool'],
    address: 'tool',
    field: { label: 'Tool' },
  },
  /** Without `flag`: the CLI has a different one, because it lists pending approvals by default. */
  status: { kind: 'words', words: APPROVAL_STATUSES, describes: '', field: { label: 'Status', all: 'Any status' } },
  inputHash: {
    ...text,
    describes: 'Hash of the tool input',
    flag: ['--input <hash>', 'approvals of one input, by its hash'],
    address: null,
  },
  agentId: {
    ...inHindsight,
    describes: 'External agent id',
    flag: ['--agent <id>', 'approvals requested by one agent, by its external id'],
    address: 'agent',
    field: { label: 'Agent', placeholder: 'Agent id' },
  },
  policyId: {
    ...inHindsight,
    describes: 'Policy that required approval',
    flag: ['--policy <id>', 'approvals required by one policy'],
    address: 'policy',
    field: { label: 'Policy' },
  },
  runId: {
    ...text,
    describes: 'External run id',
    flag: ['--run <id>', 'approvals of one run, by its external id'],
    address: 'run',
    field: { label: 'Run', placeholder: 'Run id' },
  },
  session: {
    ...inHindsight,
    describes: 'External session id that the request named',
    flag: ['--session <id>', 'approvals of one session, by its external id'],
    field: { label: 'Session', placeholder: 'Session id' },
  },
  user: {
    ...inHindsight,
    describes: `Requests of the newest ${LIMITS.issueUserRuns} runs for this end user`,
    flag: ['--user <id>', 'approvals of the newest runs for one end user'],
    field: { label: 'End user' },
  },
  from: {
    kind: 'time',
    hindsight: true,
    describes: 'Asked at or after this time',
    flag: ['--from <when>', 'asked since: a time, or a duration ago such as 7d'],
    field: { label: 'Asked' },
  },
  to: {
    kind: 'time',
    hindsight: true,
    describes: 'Asked before this time',
    flag: ['--to <when>', 'asked before: a time, or a duration ago'],
  },
  withdrawn: {
    kind: 'words',
    words: ['only', 'without'],
    describes: 'Requests that their clients withdrew: only these, or none of them; both by default',
    flag: ['--withdrawn <which>', 'pending requests that their clients withdrew: only or without'],
    address: null,
  },
} as const satisfies Record<string, ApprovalFilterRow>

type Rows = typeof APPROVAL_FILTERS
export const HINDSIGHT_FILTERS = Object.fromEntries(
  Object.entries(APPROVAL_FILTERS).filter(([, row]) => 'hindsight' in row),
) as { [Name in keyof Rows as Rows[Name] extends { hindsight: true } ? Name : never]: Rows[Name] }
