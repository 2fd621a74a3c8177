import { APPROVAL_STATUSES, type ApprovalStatus } from '@tacho/contract/approval.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { connected } from '../connected.ts'
import { decide, type DecideOptions } from '../approvals/decide.ts'
import { listApprovals, listGroups, showApproval } from '../approvals/list.ts'
import { watch, watchAndDecide } from '../approvals/watch.ts'
import { inEnvironment, wholeNumber, type EnvironmentOptions } from '../options.ts'

interface ListOptions extends EnvironmentOptions {
  status: ApprovalStatus | 'ALL'
  tool?: string
  input?: string
  agent?: string
  policy?: string
  run?: string
  groups?: true
  limit: number
  all?: true
}

const MOST = 1_000_000
const LISTED = 50
const EXAMPLE_ID = '019a0c44-3700-7686-a2e1-3c01640563f0'

export function addApprovals(program: Command): void {
  const approvals = program.command('approvals').description('tool calls that wait for a person')

  inEnvironment(approvals.command('list').description('list approvals; pending ones, the oldest deadline first'))
    .option('--status <status>', `${APPROVAL_STATUSES.join(', ')} or ALL`, parseStatus, 'PENDING' as const)
    .option('--tool <name>', 'approvals for one tool')
    .option('--input <hash>', 'approvals for one input, by its hash')
    .option('--agent <id>', 'approvals that one agent asked for, by its external id')
    .option('--policy <id>', 'approvals that one policy required')
    .option('--run <id>', 'approvals of one run, by its external id')
    .option('--groups', 'what is pending, counted by tool and input')
    .option('-n, --limit <number>', 'most to show', wholeNumber(MOST), LISTED)
    .option('--all', 'show all of them, whatever --limit says')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho approvals list\n  tacho approvals list --status EXPIRED --tool refund --json',
    )
    .action(list)

  inEnvironment(approvals.command('show <approvalId>').description('show an approval and what happened after it'))
    .addHelpText('after', `\nExample:\n  tacho approvals show ${EXAMPLE_ID}`)
    .action(show)

  inEnvironment(approvals.command('watch').description('show approvals as they come; on a terminal, decide them'))
    .option('--no-decide', 'only show them')
    .addHelpText(
      'after',
      '\n--json prints one line for each approval that is new or has changed.\n\nExample:\n  tacho approvals watch --json | jq -r .toolName',
    )
    .action(watchAll)

  for (const [verb, decision] of [
    ['approve', 'APPROVED'],
    ['reject', 'REJECTED'],
  ] as const) {
    inEnvironment(approvals.command(`${verb} [approvalId...]`).description(`${verb} approvals that are pending`))
      .option('--reason <text>', 'why: the client is told, and it is kept')
      .option('--tool <name>', 'all that is pending for this tool and --input')
      .option('--input <hash>', 'hash of the input')
      .addHelpText(
        'after',
        `\nSeveral are decided together only when they are for one tool and input. The exit code is 1 unless all could be decided.\n\nExamples:\n  tacho approvals ${verb} ${EXAMPLE_ID} --reason "known customer"\n  tacho approvals ${verb} --tool refund --input 9f86d081884c7d659a2feaa0c55ad015`,
      )
      .action((ids: string[], options: DecideOptions) => decide(decision, ids, options))
  }
}

function parseStatus(text: string): ApprovalStatus | 'ALL' {
  const word = [...APPROVAL_STATUSES, 'ALL' as const].find((known) => known === text.toUpperCase())
  if (word !== undefined) return word
  throw new InvalidArgumentError(`It must be one of ${APPROVAL_STATUSES.join(', ')} or ALL.`)
}

async function list(options: ListOptions): Promise<void> {
  const { status, tool, input, agent, policy, run, groups, limit, all } = options
  const { client, environmentId } = await connected(options)
  if (groups) return listGroups(client, environmentId, options.json === true)
  const query = {
    ...(status === 'ALL' ? {} : { status }),
    ...(tool === undefined ? {} : { toolName: tool }),
    ...(input === undefined ? {} : { inputHash: input }),
    ...(agent === undefined ? {} : { agentId: agent }),
    ...(policy === undefined ? {} : { policyId: policy }),
    ...(run === undefined ? {} : { runId: run }),
  }
  const most = all ? Number.POSITIVE_INFINITY : limit
  await listApprovals(client, environmentId, { query, limit: most }, options.json === true)
}

async function show(approvalId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  await showApproval(client, { environmentId, approvalId }, options.json === true)
}

async function watchAll(options: EnvironmentOptions & { decide: boolean }): Promise<void> {
  const { client, environmentId } = await connected(options)
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY
  if (isTerminal && options.decide && !options.json) return watchAndDecide(client, environmentId)
  await watch(client, environmentId, options.json === true)
}
