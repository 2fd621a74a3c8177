/** deploy, undeploy, promote and rollback, shared by prompts and policies. */
import type { DeployableKind, Deployment, PublicationResult } from '@tacho/contract/policies/deployment.ts'
import type { Command } from 'commander'
import { eachItem } from '@tacho/client/items.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OperatorClient } from '../engine/operator-client.ts'
import {
  asOperator,
  connect,
  inEnvironment,
  wholeNumber,
  type EnvironmentOptions,
  type ServerOptions,
} from '../engine/options.ts'
import { printable, printJson, printLine } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'
import { findPlace } from '../tenants/tenants.ts'
import { warnOf } from './recorded-calls.ts'
import { findItem, findVersioned } from './versioned-item.ts'

/** Digits of a revision that are shown: enough to tell two revisions apart. */
const SHOWN_DIGITS = 12
const WAIT_SECONDS = 120
const WAIT_SECONDS_MAX = 3_600
const WAIT_POLL_MS = 1_000

interface NoteOptions {
  note?: string
}

interface DeployOptions extends EnvironmentOptions, NoteOptions {
  number?: string
  share?: string
  replaces?: string
  wait?: true | number
}

interface PromoteOptions extends ServerOptions, NoteOptions {
  from: string
  to: string
  all?: true
}

const REPLACES = ['--replaces <version>', 'change nothing if another version is in force; none: if any is'] as const

const SHARES = `
With --share, the other sessions keep the version in force. A session gets the same version in every process. Another
--share changes the percentage; deploying the version without it makes it the version in force.

  tacho prompts deploy greeting@5 --share 10%
  tacho prompts deploy greeting@5 --share 0       # ends it: all sessions get the version in force
`

/** Adds the four commands to `prompts` or `policies`. `one` is the argument's name in the help. */
export function addDeploying(commands: Command, kind: DeployableKind, one: string): void {
  const plural = commands.name()

  const deployCommand = inEnvironment(
    commands.command(`deploy <${one}>`).description(`deploy a version of a ${kind} to an environment`),
  ).option('--number <version>', `or as ${one}@version; default: the newest`)
  if (kind === 'prompt') {
    deployCommand.option('--share <percent>', 'only so many percent of the sessions get it, 1 to 99; 0 ends its share')
  }
  deployCommand
    .option(...REPLACES)
    .option('--note <text>', 'reason, stored with the deployment')
    .option(
      '--wait [seconds]',
      `wait until the clients that ask have it, at most so long; default: ${WAIT_SECONDS}`,
      wholeNumber(WAIT_SECONDS_MAX),
    )
    .addHelpText(
      'after',
      `\nAll nodes serve the new version within a second. Agents that wait for changes, as the SDKs do, have it then too; others get it\nat their next refresh: by default every 30 seconds, or at the interval that they set. A policy is compared with the recorded calls, for warnings only. --wait exits\nwith 1 if clients still lack it; for a minute after a change, the service writes every second which has it.\n${kind === 'prompt' ? SHARES : ''}\nExample:\n  tacho ${plural} deploy refunds --environment acme/staging`,
    )
    .action((name: string, options: DeployOptions) => deploy(kind, name, options))

  inEnvironment(commands.command(`undeploy <${one}>`).description(`remove a ${kind} from an environment`))
    .option(...REPLACES)
    .option('--note <text>', 'reason, stored with the deployment')
    .addHelpText('after', `\nExample:\n  tacho ${plural} undeploy refunds --environment acme/staging`)
    .action((name: string, options: DeployOptions) => undeploy(kind, name, options))

  inEnvironment(commands.command(`rollback <${one}>`).description(`deploy the version before the current one`))
    .option('--note <text>', 'reason, stored with the deployment')
    .addHelpText(
      'after',
      `\nRolls back one version. Repeat to go further back.\n\nExample:\n  tacho ${plural} rollback refunds --environment acme/production`,
    )
    .action((name: string, options: DeployOptions) => rollBack(kind, name, options))

  asOperator(commands.command(`promote [${one}...]`).description('deploy the same versions as another environment'))
    .requiredOption('--from <workspace/environment>', 'environment to copy from')
    .requiredOption('--to <workspace/environment>', 'environment to deploy to')
    .option('--all', 'all prompts and policies; those deployed only in the --to environment stay')
    .option('--note <text>', 'reason, stored with the deployment')
    .addHelpText(
      'after',
      `\nExamples:\n  tacho ${plural} promote refunds --from acme/staging --to acme/production\n  tacho ${plural} promote --all --from acme/staging --to acme/production`,
    )
    .action((names: string[], options: PromoteOptions) => promote(kind, names, options))
}

async function deploy(kind: DeployableKind, name: string, options: DeployOptions): Promise<void> {
  if (options.number !== undefined && !/^[1-9][0-9]{0,8}$/.test(options.number)) {
    throw wrongUsage(`--number must be a number such as 3, not ${JSON.stringify(options.number)}.`)
  }
  const share = options.share === undefined ? undefined : shareOf(options.share)
  const expected = replacesOf(options)
  const client = connect(options)
  const place = await findPlace(client, options.environment, '--environment')
  const { item, number } = await findVersioned(client, place.workspace.id, kind, name)
  const shared = share === 0 ? await findDeployment(client, place.environment.id, kind, item.id) : null
  const ended = shared?.share?.version
  const version = options.number ?? number ?? ended ?? item.newest
  const seen = options.replaces === undefined && shared !== null ? seenOf(shared) : expected
  const result = await client.deploy({
    params: { environmentId: place.environment.id },
    body: {
      items: [{ kind, id: item.id, version, ...seen, ...(share !== undefined && { share }) }],
      ...noteOf(options),
    },
  })
  if (options.wait !== undefined && !options.json) printLine('Waiting for the clients …')
  const has = options.wait === undefined ? null : await untilClientsHaveIt(client, place.environment.id, options.wait)
  const otherwise =
    share === 0 ? 'has no share there' : share ? `has this share there already` : 'is already deployed there'
  tell(result, place.name, options, `Version ${version} of ${kind} ${printable(item.name)} ${otherwise}.`)
  if (kind === 'policy' && result.changes.length > 0) {
    const params = { workspaceId: place.workspace.id, policyId: item.id, version }
    const { condition } = await client.readPolicyVersion({ params })
    const { id: environmentId } = place.environment
    await warnOf(client, [{ environmentId, environment: place.name, policy: item.id, condition }])
  }
  if (has !== null && !options.json) tellClients(has)
  if (has !== null && has.current < has.asking) process.exitCode = 1
}

interface ClientCounts {
  current: number
  asking: number
}

/** Waits for the running clients to receive the configuration. A client counts as lacking it until it asks again. */
export async function untilClientsHaveIt(
  client: OperatorClient,
  environmentId: string,
  wait: true | number,
  pollMs = WAIT_POLL_MS,
): Promise<ClientCounts> {
  const deadline = Date.now() + 1_000 * (wait === true ? WAIT_SECONDS : wait)
  for (;;) {
    const { counts } = await client.listConfigurationClients({ params: { environmentId }, query: { limit: 1 } })
    const { current, updating, behind } = counts
    const asking = current + updating + behind
    if (current === asking || Date.now() >= deadline) return { current, asking }
    await sleep(Math.min(pollMs, Math.max(1, deadline - Date.now())))
  }
}

function tellClients({ current, asking }: ClientCounts): void {
  if (asking === 0) return printLine('No client asks for the configuration of this environment.')
  printLine(`${current} of ${asking} clients have it.`)
}

async function undeploy(kind: DeployableKind, name: string, options: DeployOptions): Promise<void> {
  const seen = replacesOf(options)
  const { client, place, item } = await target(kind, name, options)
  const result = await client.deploy({
    params: { environmentId: place.environment.id },
    body: { items: [{ kind, id: item.id, version: null, ...seen }], ...noteOf(options) },
  })
  tell(result, place.name, options, `No version of ${kind} ${printable(item.name)} is deployed there.`)
}

async function rollBack(kind: DeployableKind, name: string, options: DeployOptions): Promise<void> {
  const { client, place, item } = await target(kind, name, options)
  const deployed = await findDeployment(client, place.environment.id, kind, item.id)
  // With `restores`, two people who roll back at the same time do not go back twice.
  const earlier = deployed?.earlierVersion ?? null
  const result = await client.rollBack({
    params: { environmentId: place.environment.id },
    body: {
      items: [{ kind, id: item.id, ...seenOf(deployed), ...(earlier !== null && { restores: earlier }) }],
      ...noteOf(options),
    },
  })
  tell(result, place.name, options, 'Nothing to change.')
}

async function promote(kind: DeployableKind, names: string[], options: PromoteOptions): Promise<void> {
  if (options.all && names.length > 0) throw wrongUsage('Give either names or --all.')
  if (!options.all && names.length === 0) throw wrongUsage('Give the names to promote, or --all.')
  const client = connect(options)
  const from = await findPlace(client, options.from, '--from')
  const to = await findPlace(client, options.to, '--to')
  const items = []
  for (const name of names) {
    const { id } = await findItem(client, from.workspace.id, kind, name)
    items.push({ kind, id })
  }
  const result = await client.promote({
    params: { environmentId: to.environment.id },
    body: { from: from.environment.id, ...(options.all ? {} : { items }), ...noteOf(options) },
  })
  tell(result, to.name, options, `The same versions are already deployed in ${printable(to.name)}.`)
}

function shareOf(text: string): number {
  const [, digits] = /^([0-9]{1,2})(?:\.0*)? ?%?$/.exec(text) ?? []
  if (digits === undefined)
    throw wrongUsage(`--share must be a whole percentage from 0 to 99, such as 10%, not ${JSON.stringify(text)}.`)
  return Number(digits)
}

interface Seen {
  replaces?: string | null
}

/** The version that the person expects to replace. */
function replacesOf({ replaces }: DeployOptions): Seen {
  if (replaces === undefined) return {}
  if (replaces === 'none') return { replaces: null }
  if (/^[1-9][0-9]{0,8}$/.test(replaces)) return { replaces }
  throw wrongUsage(`--replaces must be a number such as 3, or none, not ${JSON.stringify(replaces)}.`)
}

/** The version that was read. For the server, a damaged version counts as none. */
function seenOf(deployed: Pick<Deployment, 'version' | 'damaged'> | null): Seen {
  return deployed?.damaged ? {} : { replaces: deployed?.version ?? null }
}

/** The deployment of an item in an environment; null: none. */
async function findDeployment(client: OperatorClient, environmentId: string, kind: DeployableKind, id: string) {
  for await (const row of eachItem(client.listDeployments, { params: { environmentId } })) {
    if (row.kind === kind && row.id === id) return row
  }
  return null
}

async function target(kind: DeployableKind, name: string, options: EnvironmentOptions) {
  const client = connect(options)
  const place = await findPlace(client, options.environment, '--environment')
  return { client, place, item: await findItem(client, place.workspace.id, kind, name) }
}

function noteOf({ note }: NoteOptions): NoteOptions {
  return note === undefined ? {} : { note }
}

function tell(result: PublicationResult, environment: string, options: { json?: true }, otherwise: string): void {
  if (options.json) return printJson(result)
  if (result.changes.length === 0) return printLine(otherwise)
  for (const { kind, name, from, to, share } of result.changes) {
    const item = `${kind === 'prompt' ? 'Prompt' : 'Policy'} ${printable(name)}`
    const place = printable(environment)
    if (share?.percent === 0)
      printLine(`The share of version ${share.version} ended: all sessions get version ${to} of ${item} in ${place}.`)
    else if (share)
      printLine(
        `${share.percent} % of sessions get version ${share.version} of ${item} in ${place}; the others keep version ${to}.`,
      )
    else if (to === null) printLine(`${item} is no longer deployed in ${place} (was version ${from}).`)
    else printLine(`${item} is deployed in ${place} with version ${to} (before: ${from ?? 'none'}).`)
  }
  printLine(
    'Agents that wait for changes get it within a second, others at their next refresh, by default within 30 seconds.',
  )
  printLine(`The configuration has revision ${result.revision.slice(0, SHOWN_DIGITS)}; --json has all of it.`)
}
