/** `tacho approvals list` and `tacho approvals show`. */
import { eachItem, taken } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { known } from '../engine/find-by-id.ts'
import type { Input, OperatorClient } from '../engine/operator-client.ts'
import { pageSize } from '../engine/options.ts'
import { printJson, printLine, printMore, printTable, spokenNumber, type Column } from '../engine/output.ts'
import {
  alarms,
  askedText,
  callLine,
  deadlineText,
  detailLines,
  requesterOf,
  shownApproval,
  stateText,
} from './approval-lines.ts'

export interface ApprovalsWanted {
  query: NonNullable<Input<'listApprovals'>['query']>
  /** Infinity for all. */
  limit: number
}

const COLUMNS: Column[] = [
  { title: 'ASKED', as: 'time' },
  { title: 'STATUS', as: 'word' },
  { title: 'APPROVAL', as: 'id' },
  { title: 'TOOL', as: 'text' },
  { title: 'INPUT', as: 'text' },
  { title: 'AGENT', isOptional: true },
  { title: 'RUN', isOptional: true },
  { title: 'STATE', as: 'text' },
]

const GROUP_COLUMNS: Column[] = [
  { title: 'OLDEST DEADLINE' },
  { title: 'REQUESTS', align: 'right' },
  { title: 'RUNS', align: 'right' },
  { title: 'AGENTS', align: 'right' },
  { title: 'TOOL', as: 'text' },
  { title: 'INPUT', as: 'text' },
  { title: 'HASH', isOptional: true },
]

/** Inputs are read for this many of the newest requests: a recorded input belongs to a request, not to a group. */
const INPUTS_READ = 100

export async function listApprovals(
  client: OperatorClient,
  environmentId: string,
  { query, limit }: ApprovalsWanted,
  asJson: boolean,
): Promise<void> {
  const paged = { ...query, limit: pageSize(limit) }
  const cards = eachItem(client.listApprovals, { params: { environmentId }, query: paged })
  const { items, hasMore } = await taken(cards, limit)
  if (asJson) return printJson({ items, hasMore })
  const now = Date.now()
  printTable(
    COLUMNS,
    items.map((card) => [
      card.createdAt,
      shownApproval(card),
      card.id,
      card.toolName,
      askedText(card),
      requesterOf(card),
      card.runId ?? '',
      [stateText(card, now), ...burst(card), ...alarms(card, now)].join('; '),
    ]),
    'No matching approvals. `tacho approvals list --status ALL` shows earlier ones too.',
  )
  printMore(hasMore)
}

const burst = ({ askedLately }: ApprovalCard): string[] =>
  askedLately.burst ? ['unusually many requests from this agent'] : []

const HINDSIGHT_COLUMNS: Column[] = [
  { title: 'ASKED', as: 'time' },
  { title: 'STATUS', as: 'word' },
  { title: 'APPROVAL', as: 'id' },
  { title: 'TOOL', as: 'text' },
  { title: 'AGENT', isOptional: true },
  { title: 'WHAT BECAME OF IT', as: 'text' },
]

export async function listHindsight(
  client: OperatorClient,
  environmentId: string,
  { query, limit }: { query: Input<'listApprovalHindsight'>['query']; limit: number },
  asJson: boolean,
): Promise<void> {
  const paged = { ...query, limit: Math.min(limit, LIMITS.hindsightPage) }
  const listedPage = await taken(
    eachItem(client.listApprovalHindsight, { params: { environmentId }, query: paged }),
    limit,
  )
  if (asJson) return printJson(listedPage)
  printTable(
    HINDSIGHT_COLUMNS,
    listedPage.items.map(({ approval, message }) => [
      approval.createdAt,
      approval.status,
      approval.id,
      approval.toolName,
      requesterOf(approval),
      message,
    ]),
    'No matching closed requests. `tacho approvals list` shows those that wait.',
  )
  printMore(listedPage.hasMore)
}

export async function listGroups(client: OperatorClient, environmentId: string, asJson: boolean): Promise<void> {
  const groups = await client.listApprovalGroups({ params: { environmentId } })
  if (asJson) return printJson(groups)
  const query = { status: 'PENDING', limit: INPUTS_READ } as const
  const { items } = await client.listApprovals({ params: { environmentId }, query })
  const keyOf = ({ toolName, inputHash }: { toolName: string; inputHash: string }) => `${inputHash} ${toolName}`
  const inputs = new Map(items.map((card) => [keyOf(card), askedText(card)]))
  const now = Date.now()
  printTable(
    GROUP_COLUMNS,
    groups.items.map((group) => [
      deadlineText(group.oldestExpiresAt, now),
      spokenNumber(group.requests),
      spokenNumber(group.runs),
      spokenNumber(group.agents),
      group.toolName,
      inputs.get(keyOf(group)) || 'not recorded',
      group.inputHash,
    ]),
    'No pending approvals. `tacho approvals watch` waits for new ones.',
  )
  if (groups.more) process.stderr.write('The list is incomplete: only part of the queue was read.\n')
}

export async function showApproval(
  client: OperatorClient,
  place: { environmentId: string; approvalId: string },
  asJson: boolean,
): Promise<void> {
  const { environmentId } = place
  const read = (approvalId: string) => client.readApproval({ params: { environmentId, approvalId } })
  const approval = await known('approval', place.approvalId, { client, environmentId }, read)
  const params = { environmentId, approvalId: approval.id }
  const { calls, run, truncated } = await client.readApprovalAftermath({ params })
  if (asJson) return printJson({ approval, calls, run, truncated })
  for (const line of detailLines(approval, Date.now())) printLine(line)
  printLine()
  if (calls.length === 0)
    printLine(run === null ? 'Its run is not recorded.' : 'Its run has no matching tool call yet.')
  for (const call of calls) printLine(callLine(call))
  if (truncated) process.stderr.write('The run has more tool calls than were read.\n')
}
