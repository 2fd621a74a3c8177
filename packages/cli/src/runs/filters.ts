/** Flags that choose runs, for every command that takes the filters of the list of runs. */
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { RUN_STATUSES } from '@tacho/contract/engine/words.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { wholeNumber, type EnvironmentOptions } from '../engine/options.ts'
import { durationMs, moment } from '../engine/time-text.ts'

export interface RunFilterOptions extends EnvironmentOptions {
  search?: string
  agent?: string
  session?: string
  user?: string
  tag?: string
  metadata?: string
  loops?: true
  status?: RunStatus
  from?: string
  to?: string
  minCost?: string
  minLength?: number
  stalled?: true
  errors?: true
  approvals?: true
  gaps?: true
  tool?: string
  model?: string
  policy?: string
  promptVersion?: string
  score?: string
  unscored?: string
  share?: number
}

export function withRunFilters(command: Command): Command {
  return command
    .option('--search <text>', 'runs whose id begins with the text, or whose session or agent equals it')
    .option('--agent <agent>', 'runs of one agent: its name, its external id or its internal id')
    .option('--session <id>', 'runs of one session')
    .option('--user <id>', 'runs for one end user')
    .option('--tag <tag>', 'runs with this tag')
    .option('--metadata <key=value>', 'runs with this metadata; a key alone for any value')
    .option('--status <status>', RUN_STATUSES.join(', '), parseStatus)
    .option('--stalled', 'running runs without an event for as long as the stalled rule says')
    .option('--from <when>', 'runs started since: a time such as 2026-11-20T09:30:00Z, or a duration ago such as 7d')
    .option('--to <when>', 'runs started before: a time, or a duration ago')
    .option(
      '--min-cost <amount>',
      'runs whose sent cost, without estimates, is at least this in US dollars, such as 0.25',
      parseCost,
    )
    .option('--min-length <duration>', 'runs at least this long, such as 30s or 5m', parseLength)
    .option('--errors', 'runs with an error or a failed tool call')
    .option('--loops', 'runs that called a tool again and again with the same input')
    .option('--approvals', 'runs that requested an approval')
    .option('--gaps', 'runs with events that did not arrive')
    .option('--tool <name>', 'runs that called this tool')
    .option('--model <name>', 'runs that called this model')
    .option('--policy <id>', 'runs in which this policy matched a call')
    .option('--prompt-version <id>', 'runs that used this version of a prompt')
    .option('--score <filter>', 'runs by a score: its name, or such as accuracy<0.5, helpful=true, tone=rude')
    .option('--unscored <name>', 'runs without a score of this name')
    .option('--share <percent>', 'about so many of 100 runs, always the same ones', wholeNumber(100))
}

/** The query of these flags, without the agent: a list needs it under another name. */
export function runQuery(options: RunFilterOptions, now: number) {
  return {
    ...(options.search === undefined ? {} : { q: options.search }),
    ...(options.session === undefined ? {} : { session: options.session }),
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.tag === undefined ? {} : { tag: options.tag }),
    ...(options.metadata === undefined ? {} : { metadata: options.metadata }),
    ...(options.loops && { loops: 'true' as const }),
    ...(options.status === undefined ? {} : { status: options.status }),
    ...(options.stalled && { activity: 'STALLED' as const }),
    ...(options.minCost === undefined ? {} : { minCost: options.minCost }),
    ...(options.minLength === undefined ? {} : { minLengthMs: options.minLength }),
    ...(options.errors && { hasErrors: 'true' as const }),
    ...(options.approvals && { hasApprovals: 'true' as const }),
    ...(options.gaps && { completeness: 'GAPS' as const }),
    ...(options.tool === undefined ? {} : { tool: options.tool }),
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.policy === undefined ? {} : { policyId: options.policy }),
    ...(options.promptVersion === undefined ? {} : { promptVersionId: options.promptVersion }),
    ...(options.score === undefined ? {} : { score: options.score }),
    ...(options.unscored === undefined ? {} : { unscored: options.unscored }),
    ...(options.share === undefined ? {} : { share: options.share }),
    ...(options.from === undefined ? {} : { from: moment('--from', options.from, -1, now) }),
    ...(options.to === undefined ? {} : { to: moment('--to', options.to, -1, now) }),
  }
}

function parseStatus(text: string): RunStatus {
  const status = RUN_STATUSES.find((known) => known === text.toUpperCase())
  if (status !== undefined) return status
  throw new InvalidArgumentError(`It must be one of ${RUN_STATUSES.join(', ')}.`)
}

function parseCost(text: string): string {
  if (/^[0-9]{1,7}(\.[0-9]{1,9})?$/.test(text)) return text
  throw new InvalidArgumentError('It must be a number such as 0.25.')
}

function parseLength(text: string): number {
  const ms = durationMs(text)
  if (ms !== null && ms > 0) return ms
  throw new InvalidArgumentError('It must be a duration such as 30s, 5m or 2h.')
}
