/** Commands that change issues. */
import { allItems } from '@tacho/client/items.ts'
import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import type { Issue } from '@tacho/contract/issues/issue.ts'
import { known } from '../engine/find-by-id.ts'
import { Refused, type OperatorClient } from '../engine/operator-client.ts'
import type { EnvironmentOptions } from '../engine/options.ts'
import { counted, printable, printJson, printLine } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'
import type { ZoneOptions } from '../engine/period.ts'
import { moment } from '../engine/time-text.ts'
import { connected } from '../engine/connected.ts'

export interface ChangeOptions extends EnvironmentOptions, ZoneOptions {
  comment?: string
  /** Set for `ignore` only. */
  until?: string
}

export async function changeState(verb: 'resolve' | 'ignore' | 'reopen', issueId: string, options: ChangeOptions) {
  const { client, environmentId } = await connected(options)
  const until =
    options.until === undefined ? {} : { until: moment('--until', options.until, 1, Date.now(), options.zone) }
  const issue = await known('issue', issueId, { client, environmentId }, (id) => {
    const params = { environmentId, issueId: id }
    return verb === 'ignore' ? client.ignoreIssue({ params, query: until }) : client[`${verb}Issue`]({ params })
  })
  const params = { environmentId, issueId: issue.id }
  if (options.comment !== undefined) await client.commentIssue({ params, body: { text: options.comment } })
  printIssue(issue, options)
}

export async function assign(
  issueId: string,
  assignee: string | undefined,
  options: EnvironmentOptions & { nobody?: true },
): Promise<void> {
  if ((assignee === undefined) !== (options.nobody === true)) throw wrongUsage('Give either an assignee or --nobody.')
  const { client, environmentId } = await connected(options)
  const body = { assignee: assignee ?? null }
  const call = (id: string) => client.assignIssue({ params: { environmentId, issueId: id }, body })
  const issue = await known('issue', issueId, { client, environmentId }, call)
  printIssue(issue, options)
}

export async function comment(issueId: string, text: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const call = (id: string) => client.commentIssue({ params: { environmentId, issueId: id }, body: { text } })
  const made = await known('issue', issueId, { client, environmentId }, call)
  if (options.json) printJson(made)
  else printLine(`Commented at ${made.at}.`)
}

export async function merge(issueId: string, options: EnvironmentOptions & { into: string }): Promise<void> {
  const { client, environmentId } = await connected(options)
  const place = { client, environmentId }
  const read = (id: string) => client.readIssue({ params: { environmentId, issueId: id } })
  const issue = await known('issue', issueId, place, read)
  const body = { into: (await known('issue', options.into, place, read)).id }
  printIssue(await client.mergeIssue({ params: { environmentId, issueId: issue.id }, body }), options)
}

export async function split(issueId: string, fingerprintStarts: string[], options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const read = (id: string) => client.readIssue({ params: { environmentId, issueId: id } })
  const { id, groups } = await known('issue', issueId, { client, environmentId }, read)
  const params = { environmentId, issueId: id }
  const all = groups.map(({ fingerprint }) => fingerprint)
  const fingerprints = [...new Set(fingerprintStarts.map((start) => wholeFingerprint(start, all)))]
  printIssue(await client.splitIssue({ params, body: { fingerprints } }), options)
}

function wholeFingerprint(start: string, known: string[]): string {
  const matchingSets = known.filter((fingerprint) => fingerprint.startsWith(start))
  if (matchingSets.length === 1 && matchingSets[0]) return matchingSets[0]
  const which = matchingSets.length === 0 ? 'none' : 'several'
  throw wrongUsage(`${JSON.stringify(start)} matches ${which} of the issue's fingerprints: ${known.join(', ')}.`)
}

export async function retry(
  recordId: string | undefined,
  options: EnvironmentOptions & { failed?: true },
): Promise<void> {
  if ((recordId === undefined) !== (options.failed === true)) throw wrongUsage('Give either a record id or --failed.')
  const { client, environmentId } = await connected(options)
  const ids = recordId === undefined ? await failedIds(client, environmentId) : [recordId]
  const items: IssueRecord[] = []
  for (const id of ids) {
    try {
      items.push(await client.retryIssueRecord({ params: { environmentId, recordId: id } }))
    } catch (error) {
      // A conflict: another operator changed the issue first.
      if (recordId !== undefined || !(error instanceof Refused) || error.result.code !== 'conflict') throw error
    }
  }
  if (options.json) printJson({ items })
  else printLine(`${counted(items.length, 'record')} will be reviewed again.`)
}

async function failedIds(client: OperatorClient, environmentId: string): Promise<string[]> {
  const query = { status: 'FAILED' as const }
  return (await allItems(client.listIssueRecords, { params: { environmentId }, query })).map(({ id }) => id)
}

function printIssue(issue: Issue, { json }: EnvironmentOptions): void {
  if (json) printJson(issue)
  else printLine(issueLine(issue))
}

/** A changed issue on one line. */
function issueLine({ id, state, title, mergedInto }: Issue): string {
  return printable(`${title} (${id}) is ${mergedInto === null ? state : `merged into ${mergedInto}`}.`)
}
