/** `tacho issues show`: what happened, how often, and why its records are grouped. */
import { eachItem, taken } from '@tacho/client/items.ts'
import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import type { Issue, IssueActivity, IssueGroup } from '@tacho/contract/issues/issue.ts'
import { causeLines, failureLine, failureOf, type ToldEvent } from '@tacho/contract/issues/failure.ts'
import { known } from '../engine/find-by-id.ts'
import { Refused, type OperatorClient } from '../engine/operator-client.ts'
import { authorText, counted, printable, printJson, printLine, spokenTime, strong } from '../engine/output.ts'
import { toned, tonedWord } from '../engine/display.ts'
import { pageSize } from '../engine/options.ts'

export interface IssuePlace {
  environmentId: string
  issueId: string
}

export async function showIssue(
  client: OperatorClient,
  place: IssuePlace,
  options: { limit: number; json?: true },
): Promise<void> {
  const { environmentId } = place
  const read = (issueId: string) => client.readIssue({ params: { environmentId, issueId } })
  const issue = await known('issue', place.issueId, { client, environmentId }, read)
  const input = { params: { environmentId, issueId: issue.id }, query: { limit: pageSize(options.limit) } }
  const occurrences = await taken(eachItem(client.listOccurrences, input), options.limit)
  const recoveries = await taken(eachItem(client.listRecoveries, input), options.limit)
  const runs = await taken(eachItem(client.listAffectedRuns, input), options.limit)
  const agents = await taken(eachItem(client.listAffectedAgents, input), options.limit)
  const activity = await taken(eachItem(client.listIssueActivity, input), options.limit)
  if (options.json) return printJson({ issue, occurrences, recoveries, runs, agents, activity })
  for (const line of [...head(issue), ...(await lastError(client, environmentId, occurrences.items))]) printLine(line)
  for (const group of issue.groups) for (const line of groupLines(group)) printLine(line)
  section('Detections', occurrences, occurrenceLine)
  section('Recoveries', recoveries, occurrenceLine)
  section(
    'Runs',
    runs,
    ({ runId, lastSeenAt, occurrences: times }) => `${spokenTime(lastSeenAt)}  ${runId}, ${spokenTimes(times)}`,
  )
  section('Agents', agents, ({ agentId, name, lastSeenAt, occurrences: times }) => {
    return `${spokenTime(lastSeenAt)}  ${agentId}${name === null ? '' : ` (${name})`}, ${spokenTimes(times)}`
  })
  section('Activity', activity, activityLine)
}

function head(issue: Issue): string[] {
  const { stateChangedBy, regressions, assignee, mergedInto, mergedFrom, ignoredUntil, firstRelease, lastRelease } =
    issue
  const by = stateChangedBy === null ? '' : ` by ${stateChangedBy.name}`
  return [
    `${tonedWord(issue.state)}  ${strong(printable(issue.title))}`,
    `Issue     ${issue.id}`,
    printable(
      `State     ${issue.state} since ${spokenTime(issue.stateChangedAt)}${by}${ignoredUntil === null ? '' : `, until ${spokenTime(ignoredUntil)}`}`,
    ),
    `Seen      first ${spokenTime(issue.firstSeenAt)}, last ${spokenTime(issue.lastSeenAt)}`,
    `Numbers   ${[
      counted(issue.occurrences, 'detection'),
      `${issue.recoveries} recovered`,
      counted(issue.affectedRuns, 'run'),
      counted(issue.affectedUsers ?? 0, 'end user'),
      counted(issue.affectedAgents, 'agent'),
    ].join(', ')}`,
    ...(regressions === 0
      ? []
      : [
          `Regressed ${spokenTimes(regressions)}, last ${issue.lastRegressionAt === null ? '' : spokenTime(issue.lastRegressionAt)}`,
        ]),
    ...(lastRelease === null ? [] : [printable(`Release   ${releases(firstRelease, lastRelease)}`)]),
    ...(assignee === null ? [] : [printable(`Assigned  ${assignee}`)]),
    ...(mergedInto === null ? [] : [`Merged    into ${mergedInto}`]),
    ...(mergedFrom.length === 0 ? [] : [`Merged    from ${mergedFrom.join(', ')}`]),
  ]
}

/** The error in the latest occurrence that has a recorded event; empty if that event has no error. */
async function lastError(client: OperatorClient, environmentId: string, records: readonly IssueRecord[]) {
  const { runId, eventId } = records.find(({ internalEventId }) => internalEventId !== null) ?? {}
  if (!runId || !eventId) return []
  try {
    const event = await client.readEvent({ params: { environmentId, runId, eventId } })
    const failure = failureOf(event as ToldEvent)
    if (failure === null || failureLine(failure, null) === '') return []
    return [
      `Error     ${toned('red', printable(failureLine(failure, failure.place)))}`,
      ...causeLines(failure).map((line) => `          ${printable(line)}`),
      ...(failure.stack ? [`          \`tacho runs show ${printable(runId)} --stack\` shows the stack.`] : []),
    ]
  } catch (error) {
    // The run or event was erased in the meantime.
    if (error instanceof Refused) return []
    throw error
  }
}

function releases(first: string | null, last: string): string {
  return first === null || first === last ? last : `first ${first}, last ${last}`
}

function groupLines({ fingerprint, facts, occurrences, mergedFrom }: IssueGroup): string[] {
  const origin = mergedFrom === null ? '' : `, from ${mergedFrom}`
  return [
    '',
    `Grouped   by ${fingerprint} (${counted(occurrences, 'detection')}${origin})`,
    ...Object.entries(facts).map(([name, value]) => printable(`  ${name.padEnd(14)} ${[value].flat().join(', ')}`)),
  ]
}

function section<Row>(
  title: string,
  { items, hasMore }: { items: Row[]; hasMore: boolean },
  line: (row: Row) => string,
) {
  if (items.length === 0) return
  printLine()
  printLine(strong(hasMore ? `${title}, the latest ${items.length}` : title))
  for (const row of items) printLine(`  ${printable(line(row))}`)
}

function occurrenceLine({ detectedAt, agentId, runId, eventId, id }: IssueRecord): string {
  const run = runId === null ? '' : `, run ${runId}`
  return `${spokenTime(detectedAt)}  ${agentId}${run}${eventId === null ? '' : `, event ${eventId}`} (${id})`
}

function activityLine(entry: IssueActivity): string {
  const { at, actor, importedAt, text } = entry
  const who = authorText(actor?.name ?? 'The service', importedAt)
  return `${spokenTime(at)}  ${who} ${activityText(entry)}${text === null ? '' : `: ${text}`}`
}

function activityText({ kind, detail }: IssueActivity): string {
  const { assignee, issueId, until } = detail
  const other = typeof issueId === 'string' ? `issue ${issueId}` : 'another issue'
  switch (kind) {
    case 'COMMENTED':
      return 'commented'
    case 'RESOLVED':
      return 'resolved it'
    case 'IGNORED':
      return typeof until === 'string' ? `ignored it until ${spokenTime(until)}` : 'ignored it'
    case 'REOPENED':
      return 'reopened it'
    case 'REGRESSED':
      return 'reopened it, because it was detected again'
    case 'ASSIGNED':
      return typeof assignee === 'string' ? `assigned it to ${assignee}` : 'removed the assignee'
    case 'MERGED':
      return `merged ${other} into it`
    case 'MERGED_INTO':
      return `merged it into ${other}`
    case 'SPLIT':
      return `split facts off into ${other}`
    case 'SPLIT_FROM':
      return `split it off ${other}`
  }
}

function spokenTimes(count: number): string {
  return count === 1 ? 'once' : counted(count, 'time')
}
