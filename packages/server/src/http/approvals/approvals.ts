import type { ServerResponse } from 'node:http'
import { CLIENT_ID_HEADER, type Approval } from '@tacho/contract/approvals/approval.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isAsker, toApproval, toNewApproval, unstorableText, versionsIn } from '../../domain/approvals/approval.ts'
import { createPoliciesOfOtherTools } from '../../domain/approvals/asking-policies.ts'
import { applyGrants } from '../../domain/approvals/grant.ts'
import { UNSTORABLE } from '../../domain/web/text.ts'
import { isUuid, uuidv7 } from '../../storage/engine/uuid.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import { currentKey, familyOf, tenantOf } from '../tenants/api-key.ts'
import type { ApprovalReader } from './approval-reader.ts'
import type { Deps } from '../web/deps.ts'
import { admitWrites } from '../record/events.ts'
import { refuseField } from '../web/field.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { isRefusal, refuse } from '../web/reply-error.ts'
import { serveRoute } from '../web/serve-route.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import { within } from '../web/turns.ts'

/** The answer is the same for an approval of another tenant, client or key. */
export const NO_APPROVAL = refuse('not_found', 'The approval does not exist')

export function approvalsRoutes(app: FastifyInstance, deps: Deps, { feed, current, seen }: ApprovalReader): void {
  const { storage, memory, replies, keys, waitingKeys, configurations, now } = deps
  const { approvalWaits: most, approvalWaitsOfWorkspace: ofWorkspace } = LIMITS
  const waits = new Shares({ most, ofWorkspace, ofCredential: ofWorkspace / 2 })
  const admit = admitWrites(storage)
  const policiesOfOtherTools = createPoliciesOfOtherTools(configurations.read)

  serveRoute(app, ROUTES.createApproval, { memory, replies, admit }, async ({ body, headers, request }) => {
    const unstorable = unstorableText(body)
    if (unstorable) return refuseField(unstorable, UNSTORABLE)
    const { environmentId } = tenantOf(request)
    const askedAt = now()
    const by = { environmentId, clientId: headers[CLIENT_ID_HEADER], keyFamily: familyOf(request) }
    const asked = { id: uuidv7(askedAt), ...by, now: askedAt }
    const otherTools = await policiesOfOtherTools(environmentId, body.toolName)
    const beside = { policyVersions: versionsIn(body.policyVersions), otherTools }
    const { outcome, approval } = await storage.createApproval(toNewApproval(body, asked), beside)
    if (outcome === 'created') feed.look()
    if (outcome === 'erased') return refuse('conflict', 'An operator erased this request, or its run')
    if (outcome === 'imported') return refuse('conflict', 'This clientRequestId belongs to an imported approval')
    if (outcome === 'conflict') return refuse('conflict', 'This clientRequestId belongs to a different tool or input')
    const stopped = await rejectedByStop(environmentId, approval)
    // A stop may have begun while the request was stored.
    return stopped ?? shown(environmentId, approval.heldUntil ? await byGrant(approval, request) : approval)
  })

  /**
   * Rejects a request that a stop covers: a client that does not know of the stop asks for a call that the stop blocks.
   * Null: no stop covers it.
   */
  async function rejectedByStop(
    environmentId: string,
    { id, status, ...asking }: ApprovalRow,
  ): Promise<Approval | null> {
    if (status !== 'PENDING' || (await storage.findStopOver(environmentId, asking)) === null) return null
    await storage.rejectStopped(environmentId, { now: now(), limit: 1, id })
    feed.look()
    const row = await storage.findApproval(environmentId, id)
    return row && toApproval(row)
  }

  async function shown(environmentId: string, row: ApprovalRow): Promise<Approval> {
    return toApproval(row, row.status === 'APPROVED' ? await storage.findStopOver(environmentId, row) : null)
  }

  serveRoute(app, ROUTES.readApproval, deps, async ({ params, query, headers, request, reply }) => {
    const { environmentId } = tenantOf(request)
    const id = params.approvalId.toLowerCase()
    if (!isUuid(id)) return NO_APPROVAL
    const by = { clientId: headers[CLIENT_ID_HEADER], keyFamily: familyOf(request) }
    const askersRow = (row: ApprovalRow | null) => (row && isAsker(row, by) ? row : null)
    const find = async () => {
      const row = askersRow(await current.find(environmentId, id))
      return row?.heldUntil ? byGrant(row, request) : row
    }
    const holder = holderOf(request)
    // Each wait occupies a connection. A client that is answered at once pauses before it asks again.
    if (query.wait !== undefined && waits.take(holder, 1)) {
      const waiting = waitWhilePending({
        environmentId,
        id,
        find,
        own: askersRow,
        keyId: holder.credential,
        ms: query.wait * 1_000,
        response: reply.raw,
      })
      const ended = await waiting.finally(() => waits.add(holder, -1))
      // The key may have expired or been revoked during the wait.
      const key = currentKey(keys, request, now())
      if (ended && !(key instanceof Promise)) return isRefusal(key) ? key : shown(environmentId, ended)
      const waitedKey = await key
      if (isRefusal(waitedKey)) return waitedKey
    }
    // The last step, so that an earlier erasure is not missed.
    const row = await find()
    if (row === null) return NO_APPROVAL
    if (row.status === 'PENDING') seen.note(environmentId, id, query.wait !== undefined)
    // If a server ended in the middle of a stop, some requests were not rejected.
    return (await rejectedByStop(environmentId, row)) ?? shown(environmentId, row)
  })

  async function byGrant(row: ApprovalRow, request: FastifyRequest): Promise<ApprovalRow> {
    const applied = await applyGrants(storage, row, { now: now(), workspaceId: tenantOf(request).workspaceId })
    if (applied.status !== row.status) feed.look()
    return applied
  }

  interface Wait {
    environmentId: string
    id: string
    find: () => Promise<ApprovalRow | null>
    own: (row: ApprovalRow) => ApprovalRow | null
    keyId: string
    ms: number
    response: ServerResponse
  }

  /** Waits for the end of the approval. Null: it did not end. */
  async function waitWhilePending({
    environmentId,
    id,
    find,
    own,
    keyId,
    ms,
    response,
  }: Wait): Promise<ApprovalRow | null> {
    const until = performance.now() + ms
    let over = false
    let release: () => void = () => undefined
    let wake: (row: ApprovalRow | null) => void = () => undefined
    const lookAgain = () => wake(null)
    const end = () => {
      over = true
      wake(null)
    }
    response.once('close', end)
    const unwatch = waitingKeys.watch(environmentId, keyId, end)
    let unfollow: () => void = () => undefined
    try {
      const follower = { changed: ([row]: ApprovalRow[]) => wake(row ?? null), removed: lookAgain, ended: end }
      unfollow = await feed.follow(environmentId, follower, id)
      for (let isFirst = true; ; isFirst = false) {
        // Subscribe before the read, so that no later change is missed.
        const news = new Promise<ApprovalRow | null>((resolve) => (wake = resolve))
        const row = await find()
        const left = until - performance.now()
        if (!row || row.status !== 'PENDING') return row
        if (isFirst) release = seen.hold(environmentId, id)
        if (over || left <= 0) return null
        const changed = await within(news, Math.min(left, Math.max(row.expiresAt - now(), 0) + 1), null)
        if (changed && changed.status !== 'PENDING') return own(changed)
      }
    } finally {
      response.off('close', end)
      unwatch()
      release()
      unfollow()
    }
  }
}
