/**
 * The filters of the list of runs, each one row, in the order of the API's reference. API schemas, CLI flags, and
 * addresses and fields of the console are made from these rows. To add a filter, add its row. There are no schemas
 * here, because pages load this file.
 */
import { LIMITS } from '../engine/limits.ts'
import { RUN_STATUSES } from '../engine/words.ts'
import type { FilterRow, FilterValues } from '../web/filter.ts'

const LENGTHS_MS = [10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000] as const

const ONE_TEXT = { kind: 'text', max: LIMITS.searchChars } as const

/**
 * `by`: how the store finds its runs. `index`: by an indexed column. `lookup`: by a separate query. `scan`: by reading
 * columns of a bounded number of runs. `trait`: like `scan`, by names from the run's events. The type check names the
 * missing condition of an `index` or a `scan`. A `trait` needs none, and a `lookup` is in RunCriteria and `listRuns`.
 */
export type RunFilterRow = FilterRow & {
  by: 'index' | 'lookup' | 'scan' | 'trait'
  trait?: string
}

export const RUN_FILTERS = {
  agentId: { kind: 'uuid', by: 'index', describes: 'Internal agent id', address: null },
  agent: {
    ...ONE_TEXT,
    by: 'lookup',
    describes:
      'Runs of agents with this external id or name. A name search examines the newest ' +
      `${LIMITS.searchedAgents} agents with an id in the environment, and finds at most ${LIMITS.searchedAgentsOfName} of one name`,
    flag: ['--agent <agent>', 'runs of one agent: its name, its external id or its internal id'],
    field: { label: 'Agent' },
  },
  session: {
    kind: 'text',
    max: LIMITS.textChars,
    by: 'index',
    describes: 'External session id',
    flag: ['--session <id>', 'runs of one session'],
    address: 'sessionId',
    field: { label: 'Session' },
  },
  sessionId: {
    kind: 'text',
    max: LIMITS.textChars,
    by: 'lookup',
    former: 'session',
    describes: 'The former name of session',
    address: null,
  },
  user: {
    kind: 'text',
    max: LIMITS.textChars,
    by: 'index',
    describes: 'Runs for this end user, by its id',
    flag: ['--user <id>', 'runs for one end user'],
    field: { label: 'End user' },
  },
  status: {
    kind: 'words',
    words: RUN_STATUSES,
    by: 'index',
    describes: '',
    flag: ['--status <status>', RUN_STATUSES.join(', ')],
    field: { label: 'Status', all: 'Any status' },
  },
  activity: {
    kind: 'words',
    words: ['STALLED'],
    by: 'scan',
    describes: 'RUNNING runs that are stalled: no event for as long as the stalled rule says, and no pending request',
    flag: ['--stalled', 'running runs without an event for as long as the stalled rule says'],
    address: null,
  },
  from: {
    kind: 'time',
    by: 'index',
    describes: 'Runs started at or after this time',
    flag: ['--from <when>', 'runs started since: a time such as 2026-11-20T09:30:00Z, or a duration ago such as 7d'],
    field: { label: 'Started' },
  },
  to: {
    kind: 'time',
    by: 'index',
    describes: 'Runs started before this time',
    flag: ['--to <when>', 'runs started before: a time, or a duration ago'],
  },
  q: {
    ...ONE_TEXT,
    by: 'lookup',
    describes:
      'Search: runs whose external id starts with this text, or whose session id, agent id or agent name equals it. ' +
      'Combines with the other filters. Case-sensitive. When more than ' +
      `${LIMITS.searchedRunIds} run ids start with it, the last ${LIMITS.searchedRunIds} in code point order are ` +
      `examined. A name search examines the newest ${LIMITS.searchedAgents} agents with an id in the environment, ` +
      `and finds at most ${LIMITS.searchedAgentsOfName} of one name`,
    flag: ['--search <text>', 'runs whose id begins with the text, or whose session or agent equals it'],
    field: { label: 'Search runs', placeholder: 'Run, session or agent' },
  },
  minCost: {
    kind: 'amount',
    by: 'scan',
    describes: 'Runs whose cost, sent and estimated, is at least this, in US dollars: a decimal number such as 0.25',
    flag: ['--min-cost <amount>', 'runs whose cost, sent and estimated, is at least this in US dollars, such as 0.25'],
    field: { label: 'Cost at least, in US dollars', placeholder: 'Cost, from $' },
  },
  minLengthMs: {
    kind: 'duration',
    by: 'scan',
    describes: 'Runs at least this long, from the start to the end or the latest event',
    flag: ['--min-length <duration>', 'runs at least this long, such as 30s or 5m'],
    field: { label: 'Length at least', all: 'Any length', offered: LENGTHS_MS },
  },
  hasErrors: {
    kind: 'words',
    words: ['true'],
    by: 'scan',
    describes: 'Runs with an event that tells an error, as errorCount counts them',
    flag: ['--errors', 'runs with an error or a failed tool call'],
    field: { label: 'With errors' },
  },
  completeness: {
    kind: 'words',
    words: ['GAPS'],
    by: 'index',
    describes: 'Runs with events that did not arrive: rejected, dropped by the client, or missing',
    flag: ['--gaps', 'runs with events that did not arrive'],
    field: { label: 'With missing events' },
  },
  hasApprovals: {
    kind: 'words',
    words: ['true'],
    by: 'lookup',
    describes: `Runs of the newest ${LIMITS.searchedApprovals} requests for approval in the environment`,
    flag: ['--approvals', 'runs that requested an approval'],
    field: { label: 'With approvals' },
  },
  tool: {
    ...ONE_TEXT,
    by: 'trait',
    trait: 'tool',
    describes: 'Runs with a TOOL_CALL of this toolName',
    flag: ['--tool <name>', 'runs that called this tool'],
    field: { label: 'Tool' },
  },
  model: {
    ...ONE_TEXT,
    by: 'trait',
    trait: 'model',
    describes: 'Runs with an LLM_CALL of this model',
    flag: ['--model <name>', 'runs that called this model'],
    field: { label: 'Model' },
  },
  policyId: {
    ...ONE_TEXT,
    by: 'trait',
    trait: 'policy',
    describes: 'Runs with a POLICY_DECISION of this policy',
    flag: ['--policy <id>', 'runs in which this policy matched a call'],
    field: { label: 'Policy' },
  },
  tag: {
    ...ONE_TEXT,
    by: 'trait',
    trait: 'tag',
    describes: 'Runs with this tag',
    flag: ['--tag <tag>', 'runs with this tag'],
    field: { label: 'Tag' },
  },
  metadata: {
    ...ONE_TEXT,
    by: 'trait',
    trait: 'meta',
    describes: 'Runs with this metadata: key=value, or a key for any value',
    flag: ['--metadata <key=value>', 'runs with this metadata; a key alone for any value'],
    field: { label: 'Metadata, such as task=refund', placeholder: 'task=refund' },
  },
  loops: {
    kind: 'words',
    words: ['true'],
    by: 'trait',
    trait: 'loop',
    describes: `Runs in which a tool was called with the same input ${LIMITS.loopCalls} times within ${LIMITS.loopWindowCalls} tool calls`,
    flag: ['--loops', 'runs that called a tool again and again with the same input'],
    field: { label: 'With loops' },
  },
  promptVersionId: {
    kind: 'uuid',
    by: 'trait',
    trait: 'prompt',
    describes: 'Runs with an event that names this prompt version',
    flag: ['--prompt-version <id>', 'runs that used this version of a prompt'],
  },
  score: {
    ...ONE_TEXT,
    by: 'scan',
    describes:
      'Runs with a score: its name, or name<0.5, name<=, name>, name>=, name=1, compared with the mean of the run; name=true or ' +
      'name=false, for what at least half or less than half of its scores say; name=word, for its latest category',
    flag: ['--score <filter>', 'runs by a score: its name, or such as accuracy<0.5, helpful=true, tone=rude'],
    field: {
      label: 'Score, such as accuracy<0.5',
      placeholder: 'Score, accuracy<0.5',
      // The syntax that `readScoreFilter` reads.
      pattern: '[^<>=]{1,64}((<=|>=|<|>)\\s*-?[0-9]+([.][0-9]+)?\\s*|=.+)?',
    },
  },
  unscored: {
    kind: 'text',
    max: LIMITS.scoreNameChars,
    by: 'scan',
    describes: 'Runs without a score of this name',
    flag: ['--unscored <name>', 'runs without a score of this name'],
    field: { label: 'Without a score named', placeholder: 'Without score' },
  },
  unjudged: {
    kind: 'text',
    max: LIMITS.scoreNameChars,
    by: 'scan',
    describes: 'Runs without a score of this name by the caller',
    flag: ['--unjudged <name>', 'runs without a score of this name by yourself'],
  },
  share: {
    kind: 'count',
    max: 100,
    by: 'scan',
    describes: 'About so many of 100 runs, chosen by their internal ids: always the same runs',
    flag: ['--share <percent>', 'about so many of 100 runs, always the same ones'],
  },
} as const satisfies Record<string, RunFilterRow>

type Rows = typeof RUN_FILTERS
export type RunFilterName = keyof Rows
export type RunFilterValues = FilterValues<Rows>
export type RunFiltersBy<By extends RunFilterRow['by']> = {
  [Name in RunFilterName]: Rows[Name]['by'] extends By ? Name : never
}[RunFilterName]

export const RUN_FILTER_NAMES = Object.keys(RUN_FILTERS) as RunFilterName[]

export function runFiltersBy<By extends RunFilterRow['by']>(by: By): RunFiltersBy<By>[] {
  return RUN_FILTER_NAMES.filter((name) => RUN_FILTERS[name].by === by) as RunFiltersBy<By>[]
}
