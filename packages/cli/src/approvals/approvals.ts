import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { APPROVAL_FILTERS, HINDSIGHT_FILTERS } from '@tacho/contract/approvals/approval-filters.ts'
import { filterQuery, oneOf, withFilters } from '../engine/filter-flags.ts'
import { connected } from '../engine/connected.ts'
import type { DecideOptions } from './decide.ts'
import {
  inEnvironment,
  mostOf,
  wholeNumber,
  withPages,
  type EnvironmentOptions,
  type PageOptions,
} from '../engine/options.ts'
import { printPeriod, type ZoneOptions } from '../engine/period.ts'
import { APPROVAL_STATUSES, GRANT_SCOPES } from '@tacho/contract/engine/words.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'

interface ListOptions extends EnvironmentOptions, PageOptions, ZoneOptions {
  status: ApprovalStatus | 'ALL'
  groups?: true
}

const LISTED = 50
const HINDSIGHT_LISTED = 25
const EXAMPLE_ID = '019a0c44-3700-7686-a2e1-3c01640563f0'

export function addApprovals(approvals: Command): void {
  withFilters(
    withPages(
      inEnvironment(approvals.command('list').description('list approvals; pending ones, the oldest deadline first')),
      LISTED,
    ).option('--status <status>', `${APPROVAL_STATUSES.join(', ')} or ALL`, parseStatus, 'PENDING' as const),
    APPROVAL_FILTERS,
  )
    .option('--groups', 'count pending approvals by tool and input')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho approvals list\n  tacho approvals list --status EXPIRED --tool refund --json',
    )
    .action(list)

  inEnvironment(approvals.command('show <approvalId>').description('show an approval and what happened after it'))
    .addHelpText('after', `\nExample:\n  tacho approvals show ${EXAMPLE_ID}`)
    .action(show)

  withFilters(
    withPages(
      inEnvironment(
        approvals.command('hindsight').description('list closed requests with what became of each, newest first'),
      ),
      HINDSIGHT_LISTED,
    ),
    HINDSIGHT_FILTERS,
  )
    .addHelpText(
      'after',
      `
It says whether the call ran before or after the decision, or although it was rejected, whether it failed, and whether the
same tool ran with another input after a rejection.

Example:
  tacho approvals hindsight --from 30d --agent refunds`,
    )
    .action(hindsight)

  inEnvironment(approvals.command('watch').description('show approvals live; on a terminal, decide them'))
    .option('--no-decide', 'only show, never ask')
    .addHelpText(
      'after',
      '\nOn a terminal: a list with deadlines that tick, and the selected request with its recorded input. a approves, r rejects,\nA and R ask for a reason, g decides all requests with the same tool and input, j and k choose, q quits.\n--json prints one line for each new or changed approval.\n\nExample:\n  tacho approvals watch --json | jq -r .toolName',
    )
    .action(watchAll)

  inEnvironment(
    approvals
      .command('asked')
      .description('how often each policy asked, how fast people answered, and how many they rejected'),
  )
    .option('--hours <number>', 'hours to look back', wholeNumber(LIMITS.unansweredHoursMax), 168)
    .addHelpText('after', '\nExample:\n  tacho approvals asked --hours 24')
    .action(async (options: EnvironmentOptions & { hours: number }) => {
      const { listAsked } = await import('./grants.ts')
      await listAsked(options)
    })

  addGrants(approvals.command('grants').description('calls to come that approvers allowed: standing approvals'))

  for (const [verb, decision] of [
    ['approve', 'APPROVED'],
    ['reject', 'REJECTED'],
  ] as const) {
    const command = inEnvironment(
      approvals.command(`${verb} [approvalId...]`).description(`${verb} approvals that are pending`),
    )
    if (verb === 'approve') {
      command
        .option('--confirm-mismatch', 'also if the recorded input is not the one that would run')
        .option(
          '--also <what>',
          'allow calls to come: input (the same input again in this run), tool (this tool in this run) or condition',
          oneOf(GRANT_SCOPES),
        )
        .option(
          '--where <condition>',
          'allow calls of this tool by this agent whose input fulfils it: CEL over tool.input',
        )
        .option(
          '--minutes <number>',
          `how long; default ${LIMITS.grantMinutes}`,
          wholeNumber(LIMITS.grantAgentMinutesMax),
        )
        .option('--uses <number>', `how many calls; default ${LIMITS.grantUses}`, wholeNumber(LIMITS.grantUsesMax))
    }
    command
      .option('--reason <text>', 'reason, stored and sent to the client')
      .option('--tool <name>', 'all pending approvals of this tool and --input')
      .option('--input <hash>', 'hash of the input')
      .addHelpText(
        'after',
        `\nTo decide several together, they must have the same tool and input. The exit code is 1 unless all were decided.\n\nExamples:\n  tacho approvals ${verb} ${EXAMPLE_ID} --reason "known customer"\n  tacho approvals ${verb} --tool refund --input 9f86d081884c7d659a2feaa0c55ad015`,
      )
      .action(async (ids: string[], options: DecideOptions) => {
        const { decide } = await import('./decide.ts')
        await decide(decision, ids, options)
      })
  }
}

function addGrants(grants: Command): void {
  withPages(inEnvironment(grants.command('list').description('list standing approvals, newest first')), LISTED)
    .addHelpText('after', '\nExample:\n  tacho approvals grants list')
    .action(async (options: EnvironmentOptions & PageOptions) => {
      const { listGrants } = await import('./grants.ts')
      await listGrants(options)
    })
  inEnvironment(grants.command('revoke <grantId>').description('end a standing approval at once'))
    .addHelpText('after', `\nExample:\n  tacho approvals grants revoke ${EXAMPLE_ID}`)
    .action(async (grantId: string, options: EnvironmentOptions) => {
      const { revokeGrant } = await import('./grants.ts')
      await revokeGrant(grantId, options)
    })
}

function parseStatus(text: string): ApprovalStatus | 'ALL' {
  const word = [...APPROVAL_STATUSES, 'ALL' as const].find((known) => known === text.toUpperCase())
  if (word !== undefined) return word
  throw new InvalidArgumentError(`It must be one of ${APPROVAL_STATUSES.join(', ')} or ALL.`)
}

async function list(options: ListOptions): Promise<void> {
  const { status, groups } = options
  const { client, environmentId } = await connected(options)
  const { listApprovals, listGroups } = await import('./list.ts')
  if (groups) return listGroups(client, environmentId, options.json === true)
  const query = {
    ...(status === 'ALL' ? {} : { status }),
    ...filterQuery(APPROVAL_FILTERS, options, Date.now()),
  }
  if (!options.json) printPeriod(query, options)
  await listApprovals(client, environmentId, { query, limit: mostOf(options) }, options.json === true)
}

async function hindsight(options: EnvironmentOptions & PageOptions & ZoneOptions): Promise<void> {
  const query = filterQuery(HINDSIGHT_FILTERS, options, Date.now())
  const { client, environmentId } = await connected(options)
  const { listHindsight } = await import('./list.ts')
  if (!options.json) printPeriod(query, options)
  await listHindsight(client, environmentId, { query, limit: mostOf(options) }, options.json === true)
}

async function show(approvalId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { showApproval } = await import('./list.ts')
  await showApproval(client, { environmentId, approvalId }, options.json === true)
}

async function watchAll(options: EnvironmentOptions & { decide: boolean }): Promise<void> {
  const { client, environmentId } = await connected(options)
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY
  if (isTerminal && options.decide && !options.json) {
    const { stdin: input, stdout: output } = process
    const { runScreen } = await import('./live.ts')
    // In raw mode, Ctrl-C is a key and not a signal.
    if (await runScreen(client, environmentId, { input, output })) process.exitCode = 130
    return
  }
  const { watch } = await import('./watch.ts')
  await watch(client, environmentId, options.json === true)
}
