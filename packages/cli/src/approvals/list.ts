/** `tacho approvals list` and `tacho approvals show`. */
import { eachItem } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { ApprovalCard } from '@tacho/contract/operator/approval.ts'
import { known } from '../calls/known.ts'
import type { Input, OperatorClient } from '../calls/operator-client.ts'
import { printJson, printLine, printTable, spokenNumber, type Column } from '../terminal/output.ts'
import { callLine, detailLines, stateText } from './lines.ts'

export interface ApprovalsWanted {
  query: NonNullable<Input<'listApprovals'>['query']>
  /** Infinity for all. */
  limit: number
}

const COLUMNS: Column[] = ['ASKED', 'STATUS', 'APPROVAL', 'TOOL', 'AGENT', 'RUN', 'STATE'].map((title) => ({ title }))

const GROUP_COLUMNS: Column[] = [
  { title: 'OLDEST DEADLINE' },
  ...['REQUESTS', 'RUNS', 'AGENTS'].map((title): Column => ({ title, align: 'right' })),
  ...['TOOL', 'INPUT'].map((title) => ({ title })),
]

export async function listApprovals(
  client: OperatorClient,
  environmentId: string,
  { query, limit }: ApprovalsWanted,
  asJson: boolean,
): Promise<void> {
  const items: ApprovalCard[] = []
  let hasMore = false
  const paged = { ...query, limit: Math.min(limit + 1, LIMITS.operatorPageMax) }
  for await (const card of eachItem(client.listApprovals, { params: { environmentId }, query: paged })) {
    if (items.length === limit) {
      hasMore = true
      break
    }
    items.push(card)
  }
  if (asJson) return printJson({ items, hasMore })
  if (items.length === 0) return printLine('No matching approvals.')
  const now = Date.now()
  printTable(
    COLUMNS,
    items.map((card) => [
      card.createdAt,
      card.status,
      card.id,
      card.toolName,
      card.agentId ?? card.clientId,
      card.runId ?? '',
      `${stateText(card, now)}${card.askedLately.burst ? ' (unusually many requests from this agent)' : ''}`,
    ]),
  )
  // On stderr: scripts may count or cut the lines of stdout.
  if (hasMore) process.stderr.write('There are more: use --limit or --all.\n')
}

export async function listGroups(client: OperatorClient, environmentId: string, asJson: boolean): Promise<void> {
  const groups = await client.listApprovalGroups({ params: { environmentId } })
  if (asJson) return printJson(groups)
  if (groups.items.length === 0) return printLine('No pending approvals.')
  printTable(
    GROUP_COLUMNS,
    groups.items.map((group) => [
      group.oldestExpiresAt,
      spokenNumber(group.requests),
      spokenNumber(group.runs),
      spokenNumber(group.agents),
      group.toolName,
      group.inputHash,
    ]),
  )
  if (groups.more) process.stderr.write('The list is incomplete: only part of the queue was read.\n')
}

export async function showApproval(
  client: OperatorClient,
  place: { environmentId: string; approvalId: string },
  asJson: boolean,
): Promise<void> {
  const approval = await known('approval', place.approvalId, client.readApproval({ params: place }))
  const { calls, run, truncated } = await client.readApprovalAftermath({ params: place })
  if (asJson) return printJson({ approval, calls, run, truncated })
  for (const line of detailLines(approval, Date.now())) printLine(line)
  printLine()
  if (calls.length === 0)
    printLine(run === null ? 'Its run is not recorded.' : 'Its run has no matching tool call yet.')
  for (const call of calls) printLine(callLine(call))
  if (truncated) process.stderr.write('The run has more tool calls than were read.\n')
}
