/** `tacho issues list` and `tacho issues records`. */
import { eachItem } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { IssueRecord } from '@tacho/contract/operator/issue-record.ts'
import type { IssueSummary } from '@tacho/contract/operator/issue.ts'
import type { Input, OperatorClient } from '../calls/operator-client.ts'
import { printJson, printLine, printTable, spokenNumber, type Column } from '../terminal/output.ts'
import { taken } from '../calls/taken.ts'

export interface IssuesWanted {
  query: NonNullable<Input<'listIssues'>['query']>
  /** Infinity for all. */
  limit: number
}

export interface RecordsWanted {
  query: NonNullable<Input<'listIssueRecords'>['query']>
  limit: number
}

const ISSUE_COLUMNS: Column[] = [
  ...['LAST SEEN', 'STATE', 'ISSUE', 'WHAT'].map((title): Column => ({ title })),
  ...['TIMES', 'RUNS', 'AGENTS'].map((title): Column => ({ title, align: 'right' })),
  { title: 'ASSIGNED TO' },
]

const RECORD_COLUMNS: Column[] = ['RECEIVED', 'STATUS', 'RECORD', 'KIND', 'TYPE', 'AGENT', 'RUN', 'FAILURE'].map(
  (title) => ({ title }),
)

export async function listIssues(
  client: OperatorClient,
  environmentId: string,
  { query, limit }: IssuesWanted,
  asJson: boolean,
): Promise<void> {
  const paged = { ...query, limit: pageSize(limit) }
  const found = await taken(eachItem(client.listIssues, { params: { environmentId }, query: paged }), limit)
  if (asJson) return printJson(found)
  if (found.items.length === 0) return printLine('No matching issues.')
  printTable(ISSUE_COLUMNS, found.items.map(issueCells))
  tellMore(found.hasMore)
}

export async function listRecords(
  client: OperatorClient,
  environmentId: string,
  { query, limit }: RecordsWanted,
  asJson: boolean,
): Promise<void> {
  const paged = { ...query, limit: pageSize(limit) }
  const found = await taken(eachItem(client.listIssueRecords, { params: { environmentId }, query: paged }), limit)
  if (asJson) return printJson(found)
  if (found.items.length === 0) return printLine('No matching records.')
  printTable(RECORD_COLUMNS, found.items.map(recordCells))
  tellMore(found.hasMore)
}

/** Reads one more than it shows, to know whether there are more. */
export function pageSize(limit: number): number {
  return Math.min(limit + 1, LIMITS.operatorPageMax)
}

// On stderr: scripts may count or cut the lines of stdout.
function tellMore(hasMore: boolean): void {
  if (hasMore) process.stderr.write('There are more: use --limit or --all.\n')
}

function issueCells(issue: IssueSummary): string[] {
  return [
    issue.lastSeenAt,
    issue.state,
    issue.id,
    issue.title,
    spokenNumber(issue.occurrences),
    spokenNumber(issue.affectedRuns),
    spokenNumber(issue.affectedAgents),
    issue.assignee ?? '',
  ]
}

function recordCells(record: IssueRecord): string[] {
  return [
    record.receivedAt,
    record.status,
    record.id,
    record.recordKind,
    record.detectionType,
    record.agentId,
    record.runId ?? '',
    record.failure ?? '',
  ]
}
