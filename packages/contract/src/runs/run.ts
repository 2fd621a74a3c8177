import Type, { type Static } from 'typebox'
import { Event } from '../record/event.ts'
import { cursor, nextCursor, nullableTime, pageLimit, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { RUN_STATUSES } from '../engine/words.ts'

export const RunStatus = Type.Enum([...RUN_STATUSES], { $id: 'RunStatus' })
export type RunStatus = (typeof RUN_STATUSES)[number]

/** Statuses that a SESSION_OUTCOME event can close a run with. */
export type RunOutcome = Exclude<RunStatus, 'RUNNING'>

export const Usage = Type.Object(
  {
    promptTokens: Type.Integer({ minimum: 0 }),
    completionTokens: Type.Integer({ minimum: 0 }),
    totalTokens: Type.Integer({ minimum: 0 }),
    cost: Type.Number({ minimum: 0, description: 'As clients sent it, shown as US dollars' }),
  },
  { $id: 'Usage', description: 'Sums over all LLM_CALL events' },
)
export type Usage = Static<typeof Usage>

const runFields = {
  id: uuid('Internal run id'),
  runId: Type.String({ description: 'External (client) run id' }),
  status: RunStatus,
  startedAt: time('Earliest event time of the run'),
  endedAt: nullableTime('Time of the outcome that closed the run; null while RUNNING'),
  agent: Type.Object({ id: uuid('Internal agent id'), name: Type.String() }),
  usage: Usage,
}

/** Run, list item (interface: "Run (list item)"). */
export const Run = Type.Object(runFields, { $id: 'Run', description: 'One agent execution' })
export type Run = Static<typeof Run>

export const RunDetail = Type.Object(
  { ...runFields, events: Type.Array(Event), hasMoreEvents: Type.Boolean(), nextCursor },
  { $id: 'RunDetail', description: 'One run with its first events; `nextCursor` continues on /runs/{runId}/events' },
)
export type RunDetail = Static<typeof RunDetail>

export const RunsQuery = Type.Object({
  limit: pageLimit(LIMITS.runsPageDefault, LIMITS.runsPageMax),
  cursor,
  agentId: Type.Optional(uuid('Internal agent id')),
  status: Type.Optional(RunStatus),
})

export const RunParams = Type.Object({
  runId: Type.String({ description: 'External run id, or the internal run UUID' }),
})

export const RunPage = Type.Object({ items: Type.Array(Run), nextCursor }, { $id: 'RunPage' })
export type RunPage = Static<typeof RunPage>
