import { readRecorders, recordersText } from '../../record/completeness.ts'
import { columnOf } from '../../data/exported-tables.ts'
import { failureText, readFailure } from '../../record/failure.ts'
import { readSaid, saidText } from '../../record/said.ts'
import { readUncosted, uncostedText } from '../../runs/uncosted.ts'
import type { Columns } from '../engine/json-rows.ts'
import { shortText, textKey } from '../engine/keys.ts'
import { USAGE_SUMS } from '../runs/sums.ts'
import { UNCHANGED, type RunState } from './run-state.ts'

/** `counted`: changes with every event, and no index has it. `moved`: changes seldom, or an index has it. */
type Change = 'never' | 'counted' | 'moved'
type Described = readonly [name: string, column: string, type: Columns[string], change: Change]

export const RUN_COLUMNS = [
  ['id', 'id', 'uuid', 'never'],
  ['number', 'number', 'bigint', 'never'],
  ['runId', 'run_id', 'text', 'never'],
  ['agentId', 'agent_id', 'uuid', 'never'],
  ['receivedAt', 'received_at', 'bigint', 'never'],
  ['lastEventAt', 'last_event_at', 'bigint', 'counted'],
  ['eventCount', 'event_count', 'bigint', 'counted'],
  ['differingRetries', 'differing_retries', 'bigint', 'counted'],
  ['errorCount', 'error_count', 'bigint', 'counted'],
  ['traits', 'traits', 'text', 'counted'],
  ['recentCalls', 'recent_calls', 'text', 'counted'],
  ['recorders', 'recorders', 'text', 'counted'],
  ['uncosted', 'uncosted', 'text', 'counted'],
  ['failure', 'failure', 'text', 'counted'],
  ['failureMessage', 'failure_message', 'text', 'counted'],
  ['said', 'said', 'text', 'counted'],
  ...USAGE_SUMS.map((name) => [name, columnOf(name), 'bigint', 'counted'] as const),
  ['status', 'status', 'text', 'moved'],
  ['startedAt', 'started_at', 'bigint', 'moved'],
  ['endedAt', 'ended_at', 'bigint', 'moved'],
  ['closingSeq', 'closing_seq', 'bigint', 'moved'],
  ['ruleClosedAt', 'rule_closed_at', 'bigint', 'moved'],
  ['userId', 'user_id', 'text', 'moved'],
  ['userKey', 'user_key', 'text', 'moved'],
  ['hasGaps', 'has_gaps', 'integer', 'moved'],
  ['packed', 'packed', 'integer', 'moved'],
] as const satisfies readonly Described[]

export const STORED_RUN = `${RUN_COLUMNS.map(([name, column]) => `${column} AS "${name}"`).join(', ')}, session_id AS session`

type Texts = 'uncosted' | 'recorders' | 'failure' | 'said'
export type StoredRun = Omit<RunState, Texts | 'lastSeq' | keyof typeof UNCHANGED> &
  Record<Texts | 'failureMessage', string | null>

export function stateOf({ failureMessage, ...stored }: StoredRun, lastSeq: number): RunState {
  return {
    ...stored,
    recorders: readRecorders(stored.recorders),
    uncosted: readUncosted(stored.uncosted),
    failure: readFailure(stored.failure, failureMessage),
    said: readSaid(stored.said),
    session: stored.session === null ? null : shortText(stored.session),
    lastSeq,
    ...UNCHANGED,
  }
}

export function columnValues(run: RunState) {
  return {
    ...run,
    recorders: recordersText(run.recorders),
    uncosted: uncostedText(run.uncosted),
    failure: failureText(run.failure),
    failureMessage: run.failure?.message ?? null,
    said: saidText(run.said),
    sessionKey: run.namedSession === null ? null : textKey(run.namedSession),
  }
}
