import Type, { type Static } from 'typebox'
import { cursor, nextCursor, pageLimit, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { Usage } from '../run.ts'

export const UsageQuery = Type.Object({
  from: time('Start of the window; the whole hour is included'),
  to: time('End of the window; the whole hour is included. At most 31 days after from'),
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
})

/** Usage of one agent and model in one hour. */
export const UsageHour = Type.Object(
  {
    hour: time('Start of the hour, by event time'),
    agent: Type.Object({ id: uuid('Internal agent id'), name: Type.String() }),
    model: Type.String({ description: 'Model of the LLM_CALL events; empty for all other events' }),
    events: Type.Integer({ minimum: 0 }),
    usage: Usage,
  },
  { $id: 'UsageHour', description: 'Usage of one hour by agent and model' },
)
export type UsageHour = Static<typeof UsageHour>

export const UsagePage = Type.Object({ items: Type.Array(UsageHour), nextCursor }, { $id: 'UsagePage' })
export type UsagePage = Static<typeof UsagePage>
