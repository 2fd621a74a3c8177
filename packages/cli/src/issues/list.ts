/** `tacho issues list` and `tacho issues records`. */
import { eachItem, taken } from '@tacho/client/items.ts'
import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import type { ListedIssue } from '@tacho/contract/issues/issue.ts'
import type { Input, OperatorClient } from '../engine/operator-client.ts'
import { pageSize } from '../engine/options.ts'
import { printJson, printMore, printTable, spokenNumber, type Column } from '../engine/output.ts'

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
  { title: 'LAST SEEN', as: 'time' },
  { title: 'FIRST SEEN', as: 'time', isOptional: true },
  { title: 'STATE', as: 'word' },
  { title: 'WHAT', as: 'text' },
  { title: 'ISSUE', as: 'id' },
  { title: 'TIMES', align: 'right' },
  { title: 'RUNS', align: 'right' },
  { title: 'AGENTS', isOptional: true },
  { title: 'ASSIGNED TO', isOptional: true },
]

const RECORD_COLUMNS: Column[] = [
  { title: 'RECEIVED', as: 'time' },
  { title: 'STATUS', as: 'word' },
  { title: 'RECORD', as: 'whole' },
  { title: 'KIND', isOptional: true },
  { title: 'TYPE' },
  { title: 'AGENT', isOptional: true },
  { title: 'RUN' },
  { title: 'FAILURE' },
]

export async function listIssues(
  client: OperatorClient,
  environmentId: string,
  { query, limit }: IssuesWanted,
  asJson: boolean,
): Promise<void> {
  const paged = { ...query, limit: pageSize(limit) }
  const issuePage = await taken(eachItem(client.listIssues, { params: { environmentId }, query: paged }), limit)
  if (asJson) return printJson(issuePage)
  const empty =
    'No matching issues. One opens when something fails or an agent reports it. `tacho issues records` lists each time.'
  printTable(ISSUE_COLUMNS, issuePage.items.map(issueCells), empty)
  printMore(issuePage.hasMore)
}

export async function listRecords(
  client: OperatorClient,
  environmentId: string,
  { query, limit }: RecordsWanted,
  asJson: boolean,
): Promise<void> {
  const paged = { ...query, limit: pageSize(limit) }
  const recordPage = await taken(eachItem(client.listIssueRecords, { params: { environmentId }, query: paged }), limit)
  if (asJson) return printJson(recordPage)
  const empty = 'No matching records. `tacho issues list` shows the issues.'
  printTable(RECORD_COLUMNS, recordPage.items.map(recordCells), empty)
  printMore(recordPage.hasMore)
}

function issueCells(issue: ListedIssue): string[] {
  return [
    issue.lastSeenAt,
    issue.firstSeenAt,
    issue.state,
    issue.title,
    issue.id,
    spokenNumber(issue.occurrences),
    spokenNumber(issue.affectedRuns),
    issue.agentIds.length > 0 ? issue.agentIds.join(', ') : spokenNumber(issue.affectedAgents),
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
