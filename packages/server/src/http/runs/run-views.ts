/** Saved views of an environment. Everyone who reads the environment sees them, so a viewer, who changes nothing, saves none. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunFilter as RunFilterQuery } from '@tacho/contract/runs/operator-run.ts'
import type { RunView } from '@tacho/contract/runs/run-view.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import type { RunViewRow } from '../../storage/runs/run-views.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { found, refuse } from '../web/reply-error.ts'
import { listById } from '../web/paging.ts'
import { optionalTimeOf } from '../web/field.ts'
import type { OperatorDeps } from '../web/serve.ts'

const NO_VIEW = refuse('not_found', 'The view does not exist')
const NAME_TAKEN = refuse('conflict', 'The environment already has a view with this name')
const TOO_MANY = refuse('conflict', `The environment has reached its limit of ${LIMITS.runViews} views`)

export function runViewsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listRunViews', ({ environment: { id }, walk }) =>
    listById(walk, (page) => storage.listRunViews(id, page), toRunView),
  )

  serve('createRunView', async ({ body, environment, at, audit }) => {
    const { name, query, lastHours = null, columns = [] } = body
    checkTimes(query)
    const id = uuidv7(at)
    const row = { id, environmentId: environment.id, name, query, lastHours, columns, createdAt: at }
    const outcome = await storage.createRunView(row, audit(id, { name }))
    if (outcome === 'too_many') return TOO_MANY
    return outcome === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serve('changeRunView', async ({ params: { runViewId: id }, body, environment, audit }) => {
    const { name, query, lastHours, columns } = body
    if (query !== undefined) checkTimes(query)
    const change = { name, query, lastHours, columns }
    const row = found(await storage.changeRunView(environment.id, id, change, audit(id, change)), NO_VIEW)
    return row === 'name_taken' ? NAME_TAKEN : toRunView(row)
  })

  serve('removeRunView', async ({ params: { runViewId: id }, environment, audit }) =>
    toRunView(found(await storage.removeRunView(environment.id, id, audit(id)), NO_VIEW)),
  )
}

function checkTimes({ from, to }: RunFilterQuery): void {
  optionalTimeOf('query/from', from)
  optionalTimeOf('query/to', to)
}

function toRunView({ createdAt, ...view }: RunViewRow): RunView {
  return { ...view, createdAt: isoTime(createdAt) }
}
