import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { defaultOnError } from '@tacho/contract/engine/words.ts'
import { toSimulation } from '../../domain/policies/policy.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { NewSimulationRow } from '../../storage/policies/policies.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { listById } from '../web/paging.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { checkCondition } from './policies.ts'
import { checkLabels } from './tool-labels.ts'

const NO_SIMULATION = refuse('not_found', 'The environment does not have this simulation')

const isOne = (one: string | undefined, other: string | undefined) => (one === undefined) !== (other === undefined)

export function simulationsRoutes({ serve, storage, bodyValidator, work }: OperatorDeps): void {
  serve('createSimulation', async ({ request, body, environment, actor, at, audit }) => {
    const { condition, action, severity = 'MEDIUM', days } = body
    const onError = body.onError ?? defaultOnError({ action, severity })
    await checkCondition(bodyValidator, condition, request)
    const flow = body.flow ?? null
    if (flow !== null && !(isOne(flow.fromTool, flow.fromLabel) && isOne(flow.toTool, flow.toLabel))) {
      return refuse('invalid_request', 'flow needs fromTool or fromLabel, and toTool or toLabel')
    }
    const toolLabels = body.toolLabels
      ? await checkLabels(bodyValidator, body.toolLabels, request, 'toolLabels')
      : ((await storage.findToolLabels(environment.id))?.rules ?? [])
    const id = uuidv7(at)
    const asked = { condition, severity, action, onError, days, toolLabels, flow, createdAt: at, createdBy: actor.name }
    const row: NewSimulationRow = { id, environmentId: environment.id, ...asked }
    const bounds = { waiting: LIMITS.simulationsWaiting, kept: LIMITS.simulationsKept }
    if ((await storage.createSimulation(row, bounds, audit(id, { severity, action, onError, days }))) === 'too_many') {
      return refuse(
        'conflict',
        `${LIMITS.simulationsWaiting} simulations of the environment are still waiting or running`,
      )
    }
    work.wake('simulate')
    return toSimulation({ ...row, status: 'QUEUED', endedAt: null, scanned: 0, total: null, error: null, result: null })
  })

  serve('listSimulations', ({ environment: { id }, paging }) =>
    listById(paging, (page) => storage.listSimulations(id, page), toSimulation),
  )

  serve('readSimulation', async ({ params, environment: { id } }) =>
    toSimulation(foundOr(await storage.findSimulation(id, params.simulationId.toLowerCase()), NO_SIMULATION)),
  )

  serve('cancelSimulation', async ({ params, environment, at, audit }) => {
    const id = params.simulationId.toLowerCase()
    return toSimulation(foundOr(await storage.cancelSimulation(environment.id, id, at, audit(id)), NO_SIMULATION))
  })
}
