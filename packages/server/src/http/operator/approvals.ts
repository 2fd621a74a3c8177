import { LIMITS } from '@tacho/contract/limits.ts'
import type { ApprovalCard, Deciders, InputPreview } from '@tacho/contract/operator/approval.ts'
import { ASKED_LATELY, toApprovalGroup, toAskedLately } from '../../domain/approval.ts'
import { inputInShort, inputOfRequest, INPUTS_BOUNDS, soughtInput, toInputPreview } from '../../domain/input-preview.ts'
import { isStorableText } from '../../domain/text.ts'
import type { ApprovalRow } from '../../storage/approvals.ts'
import type { RunRow } from '../../storage/runs.ts'
import type { Storage } from '../../storage/storage.ts'
import type { ApprovalReader } from '../approval-reader.ts'
import { found, refuse } from '../reply-error.ts'
import { namedApprovals } from './named-approvals.ts'
import { readPage, NOTHING } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

const GROUPED_REQUESTS = 10_000

export const NO_APPROVAL = refuse('not_found', 'The approval does not exist')

export function operatorApprovalsRoutes({ serve, storage, now }: OperatorDeps, { current }: ApprovalReader): void {
  serve('listApprovals', async ({ query, environment, walk }) => {
    const { status, toolName, agentId, policyId, runId } = query
    const filter = { status, toolName, inputHash: query.inputHash?.toLowerCase(), agentId, policyId, runId }
    if (!Object.values(filter).every((text) => isStorableText(text ?? ''))) return NOTHING
    const { rows, nextCursor } = await readPage(
      walk,
      (page) => current.read(environment.id, () => storage.listApprovals(environment.id, filter, page)),
      (row: ApprovalRow) => ({ time: status === 'PENDING' ? row.expiresAt : row.createdAt, id: row.id }),
    )
    return { items: await toCards(environment.id, rows), nextCursor }
  })

  serve('listApprovalGroups', async ({ environment }) => {
    const most = LIMITS.operatorPageMax
    const bounds = { requests: GROUPED_REQUESTS, groups: most + 1 }
    const groups = await storage.groupApprovals(environment.id, now(), bounds)
    const requests = groups.reduce((sum, group) => sum + group.requests, 0)
    return {
      items: groups.slice(0, most).map(toApprovalGroup),
      more: groups.length > most || requests === GROUPED_REQUESTS,
    }
  })

  serve('readApproval', async ({ params, environment }) => {
    const row = found(await current.find(environment.id, params.approvalId), NO_APPROVAL)
    const [card] = await toCards(environment.id, [row])
    if (!card) return NO_APPROVAL
    const [preview, deciders] = await Promise.all([inputPreview(row), decidersOf(row, environment.workspaceId)])
    return { ...card, deciders, inputPreview: preview }
  })

  /** Null if the approval was decided or imported: an imported one cannot be decided. */
  async function decidersOf(row: ApprovalRow, workspaceId: string): Promise<Deciders | null> {
    if (row.status !== 'PENDING' || row.importedAt !== null) return null
    const { rows, more } = await storage.listDeciders(workspaceId, LIMITS.decidersMax)
    // By email: people choose their own names.
    return { people: rows.map(({ id, email }) => ({ id, name: email })), more }
  }

  async function inputPreview(row: ApprovalRow): Promise<InputPreview | null> {
    const run = await runOfApproval(storage, row)
    const recorded = run && (await storage.findRecordedInput(row.environmentId, run.id, soughtInput(row)))
    return recorded && toInputPreview(recorded)
  }

  async function toCards(environmentId: string, rows: ApprovalRow[]): Promise<ApprovalCard[]> {
    const keyOf = ({ agentId, clientId }: ApprovalRow) => JSON.stringify(agentId === null ? { clientId } : { agentId })
    const requesters = new Map(rows.map((row) => [keyOf(row), { agentId: row.agentId, clientId: row.clientId }]))
    const since = now() - ASKED_LATELY.windowMs
    const counts = await storage.countRequests(environmentId, [...requesters.values()], since, ASKED_LATELY.most)
    const countOf = new Map([...requesters.keys()].map((key, at) => [key, counts[at] ?? 0]))
    const approvals = await namedApprovals(storage, environmentId, rows)
    const inputs = await inputsInShort(environmentId, rows)
    return approvals.map((approval, at) => {
      const row = rows[at]
      const askedLately = toAskedLately((row && countOf.get(keyOf(row))) ?? 0)
      return { ...approval, askedLately, inputInShort: inputs.get(approval.id) ?? null }
    })
  }

  async function inputsInShort(environmentId: string, rows: readonly ApprovalRow[]): Promise<Map<string, string>> {
    const sought = rows.flatMap((row) => inputOfRequest(row) ?? [])
    if (sought.length === 0) return new Map()
    const payloads = await storage.findRecordedInputs(environmentId, sought, INPUTS_BOUNDS)
    return new Map(
      sought.flatMap(({ approvalId }, at) => {
        const payload = payloads[at]
        return payload ? [[approvalId, inputInShort(payload)] as const] : []
      }),
    )
  }
}

export async function runOfApproval(storage: Pick<Storage, 'findRun'>, row: ApprovalRow): Promise<RunRow | null> {
  const run = row.runId === null ? null : await storage.findRun(row.environmentId, row.runId)
  // The approval names an external id, so ignore a run whose internal id matches it.
  return run?.runId === row.runId ? run : null
}
