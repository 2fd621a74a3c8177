/** `tacho stop` and `tacho resume`: in a stopped scope, no guarded call runs. */
import { eachItem, taken } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { STOP_SCOPES } from '@tacho/contract/engine/words.ts'
import type { ConfigurationClient } from '@tacho/contract/policies/deployment.ts'
import type { Stop, StopScope } from '@tacho/contract/policies/stop.ts'
import type { Command } from 'commander'
import { connected } from '../engine/connected.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import {
  inEnvironment,
  mostOf,
  wholeNumber,
  withPages,
  type EnvironmentOptions,
  type PageOptions,
} from '../engine/options.ts'
import {
  counted,
  printable,
  printEmpty,
  printJson,
  printLine,
  printMore,
  printTable,
  spokenTime,
} from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'
import { untilClientsHaveIt } from './deploy.ts'

interface StopOptions extends EnvironmentOptions {
  reason: string
  wait: number
}

interface ResumeOptions extends EnvironmentOptions {
  reason?: string
}

const WAIT_SECONDS = 5
const POLL_MS = 250
const MOST_NAMED = 10
const LIST_LIMIT = 100

const ARGUMENTS: Record<StopScope, string> = {
  environment: '',
  agent: ' <agent>',
  session: ' <session>',
  run: ' <run>',
}

const THESE: Record<StopScope, string> = {
  environment: 'the environment',
  agent: 'an agent, by id or name',
  session: 'a session',
  run: 'a run',
}

export function addStop(stop: Command): void {
  for (const scope of STOP_SCOPES) {
    inEnvironment(
      stop.command(`${scope}${ARGUMENTS[scope]}`).description(`block every guarded call of ${THESE[scope]}`),
    )
      .requiredOption('--reason <text>', 'each blocked call says it, after your name')
      .option(
        '--wait <seconds>',
        'wait until the clients that ask have it, at most so long',
        wholeNumber(3_600),
        WAIT_SECONDS,
      )
      .addHelpText(
        'after',
        `\nA stop holds until \`tacho resume\`, also after a restart of the service. Calls that wait for approval are rejected. Clients that wait
for changes have it within a second, others at their next refresh.\n\nExample:\n  tacho stop ${scope}${EXAMPLES[scope]} --reason "It pays invoices twice"`,
      )
      .action((...args: unknown[]) => {
        const target = scope === 'environment' ? undefined : (args[0] as string)
        return stopScope({ scope, target }, args.at(scope === 'environment' ? 0 : 1) as StopOptions)
      })
  }
  withPages(inEnvironment(stop.command('list').description('list what is stopped')), LIST_LIMIT)
    .option('--ended', 'those that were resumed too')
    .addHelpText('after', '\nExample:\n  tacho stop list')
    .action(list)
}

const EXAMPLES: Record<StopScope, string> = {
  environment: '',
  agent: ' support',
  session: ' chat-81',
  run: ' run-4711',
}

export function addResume(resume: Command): void {
  for (const scope of STOP_SCOPES) {
    inEnvironment(resume.command(`${scope}${ARGUMENTS[scope]}`).description(`end the stop of ${THESE[scope]}`))
      .option('--reason <text>', 'stored with the stop')
      .addHelpText('after', `\nExample:\n  tacho resume ${scope}${EXAMPLES[scope]}`)
      .action((...args: unknown[]) => {
        const target = scope === 'environment' ? '' : (args[0] as string)
        return resumeScope({ scope, target }, args.at(scope === 'environment' ? 0 : 1) as ResumeOptions)
      })
  }
}

async function stopScope(
  { scope, target }: { scope: StopScope; target: string | undefined },
  { reason, wait, ...options }: StopOptions,
): Promise<void> {
  const { client, environmentId } = await connected(options)
  const params = { environmentId }
  const stop = await client.stop({ params, body: { scope, reason, ...(target !== undefined && { target }) } })
  if (!options.json) {
    printLine(
      `${nameOf(stop)} is stopped${stop.isNew ? '' : ` already, by ${printable(stop.stoppedBy)}: ${printable(stop.reason)}`}.`,
    )
    if (!stop.isKnown) printLine(`The environment has recorded no such ${scope}: check the spelling.`)
    if (stop.rejected > 0) printLine(`Rejected: ${counted(stop.rejected, 'waiting approval')}.`)
  }
  const { current, asking } = await untilClientsHaveIt(client, environmentId, wait, POLL_MS)
  const late = current === asking ? [] : await lateClients(client, environmentId)
  if (options.json) return printJson({ ...stop, clients: { confirmed: current, asking, late } })
  if (asking === 0) return printLine('No client asks for the configuration of this environment.')
  printLine(`Confirmed by ${current} of ${counted(asking, 'client')}.`)
  if (late.length === 0) return
  printTable(
    [{ title: 'NOT CONFIRMED' }, { title: 'LAST ASKED', as: 'time' }],
    late.map(({ clientId, lastSeenAt }) => [clientId, lastSeenAt]),
  )
  printMore(asking - current > late.length)
}

async function lateClients(client: OperatorClient, environmentId: string): Promise<ConfigurationClient[]> {
  const pages = (['BEHIND', 'UPDATING'] as const).map((standing) =>
    client.listConfigurationClients({ params: { environmentId }, query: { standing, limit: MOST_NAMED } }),
  )
  return (await Promise.all(pages)).flatMap(({ items }) => items).slice(0, MOST_NAMED)
}

async function resumeScope(
  { scope, target }: { scope: StopScope; target: string },
  { reason, ...options }: ResumeOptions,
): Promise<void> {
  const { client, environmentId } = await connected(options)
  const inEffect = await everyStop(client, environmentId, 'in_effect', LIMITS.stops)
  const stop = inEffect.items.find((one) => one.scope === scope && one.target === target)
  if (stop === undefined) {
    const named = scope === 'environment' ? 'The environment' : `The ${scope} ${JSON.stringify(target)}`
    throw wrongUsage(`${named} is not stopped: \`tacho stop list\` shows what is.`)
  }
  const params = { environmentId, stopId: stop.id }
  const resumed = await client.resume({ params, body: reason === undefined ? {} : { reason } })
  if (options.json) printJson(resumed)
  else printLine(`${nameOf(stop)} can go on.`)
}

async function list({ ended, ...options }: EnvironmentOptions & PageOptions & { ended?: true }): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { items, hasMore } = await everyStop(client, environmentId, ended ? 'all' : 'in_effect', mostOf(options))
  if (options.json) return printJson({ items, hasMore })
  if (items.length === 0)
    return printEmpty('Nothing is stopped. `tacho stop agent <agent>` blocks every guarded call of an agent.')
  printTable(
    [
      { title: 'SCOPE' },
      { title: 'TARGET', isOptional: true },
      { title: 'SINCE', as: 'time' },
      { title: 'BY' },
      { title: 'REASON' },
      ...(ended ? [{ title: 'RESUMED' }] : []),
    ],
    items.map((stop) => [
      stop.scope,
      stop.target,
      stop.stoppedAt,
      stop.stoppedBy,
      stop.reason,
      ...(ended ? [stop.resumedAt === null ? 'no' : `${spokenTime(stop.resumedAt)} by ${stop.resumedBy ?? ''}`] : []),
    ]),
  )
  printMore(hasMore)
}

const everyStop = (client: OperatorClient, environmentId: string, state: 'in_effect' | 'all', most: number) =>
  taken(
    eachItem(client.listStops, { params: { environmentId }, query: { state, limit: LIMITS.operatorPageMax } }),
    most,
  )

function nameOf({ scope, target }: Pick<Stop, 'scope' | 'target'>): string {
  return scope === 'environment'
    ? 'The environment'
    : `${scope[0]?.toUpperCase()}${scope.slice(1)} ${printable(target)}`
}
