import type { RecordKind, RecordStatus } from '@tacho/contract/issues/issue-record.ts'
import { ISSUE_FILTERS } from '@tacho/contract/issues/issue-filters.ts'
import type { Command } from 'commander'
import type * as Change from './change.ts'
import { connected } from '../engine/connected.ts'
import { inEnvironment, mostOf, withPages, type EnvironmentOptions, type PageOptions } from '../engine/options.ts'
import { filterQuery, oneOf, withFilters } from '../engine/filter-flags.ts'
import { printPeriod, zoneOption, type ZoneOptions } from '../engine/period.ts'
import { RECORD_KINDS, RECORD_STATUSES } from '@tacho/contract/engine/words.ts'

type ListOptions = EnvironmentOptions & PageOptions & ZoneOptions

interface RecordsOptions extends EnvironmentOptions, PageOptions {
  status?: RecordStatus
  kind?: RecordKind
}

const LISTED = 50
/** Rows of each list about one issue. */
const SHOWN = 10

const changes = () => import('./change.ts')

export function addIssues(issues: Command): void {
  addReading(issues)
  addTriage(issues)
  addGrouping(issues)
  addRecords(issues)
}

function addReading(issues: Command): void {
  withFilters(
    withPages(inEnvironment(issues.command('list').description('list issues, most recently seen first')), LISTED),
    ISSUE_FILTERS,
  )
    .addHelpText(
      'after',
      '\nExamples:\n  tacho issues list --state OPEN\n  tacho issues list --environment acme/production --agent refunds --unassigned --json',
    )
    .action(list)

  withPages(
    inEnvironment(issues.command('show <issueId>').description('show an issue and why its records are grouped')),
    SHOWN,
  )
    .addHelpText('after', '\nExample:\n  tacho issues show 019a0c44-3700-7686-a2e1-3c01640563f0 --limit 50')
    .action(show)
}

function addTriage(issues: Command): void {
  const about = {
    resolve: 'resolve an open issue; the next detection reopens it as a regression',
    ignore: 'ignore an open issue; its detections are still counted',
    reopen: 'reopen a resolved or ignored issue',
  }
  for (const verb of ['resolve', 'ignore', 'reopen'] as const) {
    const command = inEnvironment(issues.command(`${verb} <issueId>`).description(about[verb]))
    if (verb === 'ignore')
      command
        .option('--until <when>', 'when it opens again by itself: a time, or a duration from now')
        .addOption(zoneOption())
    command
      .option('--comment <text>', 'reason, added as a comment')
      .addHelpText('after', `\nExample:\n  tacho issues ${verb} 019a0c44-3700-7686-a2e1-3c01640563f0`)
      .action(async (issueId: string, options: Change.ChangeOptions) =>
        (await changes()).changeState(verb, issueId, options),
      )
  }

  inEnvironment(issues.command('assign <issueId> [assignee]').description('assign an issue to a person'))
    .option('--nobody', 'remove the assignee')
    .addHelpText('after', '\nExample:\n  tacho issues assign 019a0c44-3700-7686-a2e1-3c01640563f0 ann@example.org')
    .action(async (...commandArguments: Parameters<typeof Change.assign>) =>
      (await changes()).assign(...commandArguments),
    )

  inEnvironment(issues.command('comment <issueId> <text>').description('comment on an issue'))
    .addHelpText('after', '\nExample:\n  tacho issues comment 019a0c44-3700-7686-a2e1-3c01640563f0 "Fixed in v14"')
    .action(async (...commandArguments: Parameters<typeof Change.comment>) =>
      (await changes()).comment(...commandArguments),
    )
}

function addGrouping(issues: Command): void {
  inEnvironment(
    issues.command('merge <issueId>').description('merge an issue into another, with all its later records'),
  )
    .requiredOption('--into <issueId>', 'the issue to merge into')
    .addHelpText(
      'after',
      '\nExample:\n  tacho issues merge 019a0c44-3700-7686-a2e1-3c01640563f0 --into 019a0c44-0000-7686-a2e1-3c01640563f0',
    )
    .action(async (...commandArguments: Parameters<typeof Change.merge>) =>
      (await changes()).merge(...commandArguments),
    )

  inEnvironment(
    issues
      .command('split <issueId> <fingerprint...>')
      .description('move sets of facts out of an issue: back to the issue they were merged from, or into a new one'),
  )
    .addHelpText(
      'after',
      '\n`tacho issues show` lists the fingerprints. The first characters are enough.\n\nExample:\n  tacho issues split 019a0c44-3700-7686-a2e1-3c01640563f0 v1:9f86d081',
    )
    .action(async (...commandArguments: Parameters<typeof Change.split>) =>
      (await changes()).split(...commandArguments),
    )
}

function addRecords(issues: Command): void {
  withPages(
    inEnvironment(issues.command('records').description('list records that clients reported, newest first')),
    LISTED,
  )
    .option('--status <status>', RECORD_STATUSES.join(', '), oneOf(RECORD_STATUSES))
    .option('--kind <kind>', RECORD_KINDS.join(', '), oneOf(RECORD_KINDS))
    .addHelpText('after', '\nExample:\n  tacho issues records --status FAILED --all')
    .action(records)

  inEnvironment(issues.command('retry [recordId]').description('review a failed record again'))
    .option('--failed', 'review all failed records again')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho issues retry 019a0c44-3700-7686-a2e1-3c01640563f0\n  tacho issues retry --failed',
    )
    .action(async (...commandArguments: Parameters<typeof Change.retry>) =>
      (await changes()).retry(...commandArguments),
    )
}

async function list(options: ListOptions): Promise<void> {
  const filters = filterQuery(ISSUE_FILTERS, options, Date.now())
  const query = { ...filters, ...(filters.firstFrom !== undefined && { sort: 'firstSeen' as const }) }
  const { client, environmentId } = await connected(options)
  const { listIssues } = await import('./list.ts')
  if (!options.json) printPeriod(query, options)
  await listIssues(client, environmentId, { query, limit: mostOf(options) }, options.json === true)
}

async function show(issueId: string, options: EnvironmentOptions & PageOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { showIssue } = await import('./show.ts')
  await showIssue(client, { environmentId, issueId }, { ...options, limit: mostOf(options) })
}

async function records(options: RecordsOptions): Promise<void> {
  const { status, kind } = options
  const query = {
    ...(status === undefined ? {} : { status }),
    ...(kind === undefined ? {} : { recordKind: kind }),
  }
  const { client, environmentId } = await connected(options)
  const { listRecords } = await import('./list.ts')
  await listRecords(client, environmentId, { query, limit: mostOf(options) }, options.json === true)
}
