import { randomBytes } from 'node:crypto'
import type { NewDecision } from '@tacho/contract/approvals/approval-decision.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { FastifyRequest } from 'fastify'
import { faultOfCall, grantConditionFault, toGrant } from '../../domain/approvals/grant.ts'
import { wholeInput } from '../../domain/approvals/recorded-input.ts'
import type { ApprovalRow, NewGrant } from '../../storage/approvals/approvals.ts'
import { MINUTE_MS } from '../../storage/engine/times.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { checkCondition } from '../policies/policies.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { listById } from '../web/paging.ts'
import { foundOr, refuse } from '../web/reply-error.ts'

const NO_GRANT = refuse('not_found', 'The standing approval does not exist')

export function grantsRoutes({ serve, storage, now }: OperatorDeps): void {
  serve('listApprovalGrants', ({ environment, paging }) =>
    listById(
      paging,
      (page) => storage.listGrants(environment.id, page),
      (row) => toGrant(row, now()),
    ),
  )

  serve('revokeApprovalGrant', async ({ params, environment, actor, at, audit }) => {
    const id = params.grantId.toLowerCase()
    const row = await storage.revokeGrant(environment.id, id, { now: at, by: actor.name }, audit(id))
    return toGrant(foundOr(row, NO_GRANT), at)
  })
}

type GrantDeps = Pick<OperatorDeps, 'storage' | 'bodyValidator' | 'now'>

/** The grant that the decision creates for later calls; undefined: the decision allows only this call. */
export async function newGrantOf(
  { storage, bodyValidator, now }: GrantDeps,
  row: ApprovalRow,
  { decision, grant, confirmMismatch }: NewDecision,
  request: FastifyRequest,
): Promise<NewGrant | undefined> {
  if (grant === undefined) return undefined
  const { scope, condition, minutes = LIMITS.grantMinutes, uses = LIMITS.grantUses } = grant
  const isOfAgent = scope === 'condition'
  if (decision !== 'APPROVED') throw refuse('invalid_request', 'A rejection allows nothing: leave out grant')
  if (isOfAgent !== (condition !== undefined))
    throw refuse('invalid_request', 'grant.condition belongs to the scope condition, and only to it')
  const most = isOfAgent ? LIMITS.grantAgentMinutesMax : LIMITS.grantRunMinutesMax
  if (minutes > most) throw refuse('invalid_request', `grant.minutes must be at most ${most} with the scope ${scope}`)
  if (confirmMismatch)
    throw refuse('conflict', 'The recorded input does not match the approved hash: nothing more can be allowed with it')
  if (condition !== undefined) {
    const reads = grantConditionFault(condition)
    if (reads !== null) throw refuse('invalid_request', `grant.condition ${reads}`)
    await checkCondition(bodyValidator, condition, request)
    const fault = faultOfCall(condition, row, await wholeInput(storage, row))
    if (fault !== null) throw refuse('conflict', `Nothing is decided: grant.condition ${fault}`)
  }
  const at = now()
  const id = uuidv7(at, randomBytes)
  return { id, scope, condition: condition ?? null, mostUses: uses, expiresAt: at + minutes * MINUTE_MS }
}
