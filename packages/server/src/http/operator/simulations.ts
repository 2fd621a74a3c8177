import { LIMITS } from '@tacho/contract/limits.ts'
import { toSimulation } from '../../domain/simulation.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { NewSimulationRow } from '../../storage/simulations.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { checkCondition } from './policies.ts'
import { listPage, byId } from '../paging.ts'
import { checkTexts } from '../field.ts'
import type { OperatorDeps } from './serve.ts'

const NO_SIMULATION = refuse('not_found', 'The environment does not have this simulation')

export function simulationsRoutes({ serve, storage, cursors, work, now }: OperatorDeps): void {
  serve('createSimulation', async ({ body, request, environment }) => {
    const { condition, action, severity = 'MEDIUM', days } = body
    checkTexts({ condition })
    checkCondition(condition)
    const createdAt = now()
    const id = uuidv7(createdAt)
    const target = { kind: 'simulation', id }
    const audit = auditOf(request, createdAt, 'policy.simulate', target, { severity, action, days })
    const row: NewSimulationRow = {
      id,
      environmentId: environment.id,
      condition,
      severity,
      action,
      days,
      createdAt,
      createdBy: audit.actorName,
    }
    const bounds = { waiting: LIMITS.simulationsWaiting, kept: LIMITS.simulationsKept }
    if ((await storage.createSimulation(row, bounds, [audit])) === 'too_many') {
      return refuse(
        'conflict',
        `${LIMITS.simulationsWaiting} simulations of the environment are still waiting or running`,
      )
    }
    work.wake('simulate')
    return toSimulation({
      ...row,
      status: 'QUEUED',
      endedAt: null,
      scanned: 0,
      total: null,
      error: null,
      result: null,
    })
  })

  serve('listSimulations', async ({ query, environment: { id } }) => {
    return listPage(cursors, query, {
      of: ['simulations', id],
      read: (page) => storage.listSimulations(id, page),
      toItem: toSimulation,
      placeOf: byId,
    })
  })

  serve('readSimulation', async ({ params, environment: { id } }) => {
    const row = await storage.findSimulation(id, params.simulationId.toLowerCase())
    return row ? toSimulation(row) : NO_SIMULATION
  })

  serve('cancelSimulation', async ({ params, request, environment }) => {
    const at = now()
    const id = params.simulationId.toLowerCase()
    const audit = auditOf(request, at, 'policy.cancel_simulation', { kind: 'simulation', id }, {})
    const row = await storage.cancelSimulation(environment.id, id, at, [audit])
    return row ? toSimulation(row) : NO_SIMULATION
  })
}
