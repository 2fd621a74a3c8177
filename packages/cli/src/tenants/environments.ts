import { Option, type Command } from 'commander'
import { allItems } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ClientStanding } from '@tacho/contract/policies/deployment.ts'
import type { Environment } from '@tacho/contract/tenants/workspace.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/engine/words.ts'
import type { ClosedAs, StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import { connected } from '../engine/connected.ts'
import { Refused } from '../engine/operator-client.ts'
import { addLife } from '../data/archive.ts'
import {
  asOperator,
  connect,
  inEnvironment,
  type EnvironmentOptions,
  type ServerOptions,
  wholeNumber,
} from '../engine/options.ts'
import { printable, printJson, printLine, printTable, counted } from '../engine/output.ts'
import { allWorkspaces, environmentsOf, findPlace, findWorkspace } from './tenants.ts'

interface WorkspaceOptions extends ServerOptions {
  workspace?: string
}

interface ListOptions extends WorkspaceOptions {
  archived?: true
}

interface DeleteOptions extends ServerOptions {
  yes?: true
}

interface ClientsOptions extends EnvironmentOptions {
  standing?: ClientStanding
}

interface CreateOptions extends WorkspaceOptions {
  ifNotExists?: true
}

export function addEnvironments(environments: Command): void {
  asOperator(environments.command('list').description('list environments of one workspace or all'))
    .option('-w, --workspace <workspace>', 'name or id; default: all')
    .option('--archived', 'archived ones too')
    .addHelpText('after', '\nExamples:\n  tacho environments list\n  tacho environments list --workspace acme --json')
    .action(list)

  asOperator(environments.command('create <name>').description('create an environment in a workspace'))
    .option('-w, --workspace <workspace>', 'name or id; optional if there is only one')
    .option('--if-not-exists', 'succeed if it already exists')
    .addHelpText('after', '\nExample:\n  tacho environments create production --workspace acme --if-not-exists')
    .action(create)

  addLife(environments, {
    noun: 'environment',
    example: 'acme/staging',
    archiving: 'its API keys are refused',
    restoring: 'its API keys work again, and it is not deleted',
    within: null,
    async find(client, environmentName) {
      const { environment, name } = await findPlace(client, environmentName, '<environment>', true)
      return { params: { environmentId: environment.id }, name }
    },
    rename: (client, environmentRequest) => client.renameEnvironment(environmentRequest),
    archive: (client, environmentRequest) => client.archiveEnvironment(environmentRequest),
    restore: (client, environmentRequest) => client.restoreEnvironment(environmentRequest),
  })

  asOperator(
    environments.command('delete <environment>').description('delete an archived environment with all its data'),
  )
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      `
It is deleted ${LIMITS.environmentDeletionDays} days after this. Until then, \`tacho environments restore\` cancels it. The audit log of the workspace keeps who
asked for it and how much was deleted. Needs the role owner.

Example:
  tacho environments archive acme/staging
  tacho environments delete acme/staging`,
    )
    .action(remove)

  addStalledRule(environments)

  inEnvironment(environments.command('clients').description('list the clients of the configuration and what each has'))
    .addOption(new Option('--standing <standing>', 'only clients of this standing').choices(CLIENT_STANDINGS))
    .addHelpText(
      'after',
      `
A client is CURRENT with the revision of the environment, UPDATING for two minutes after a change, then BEHIND. It is
SILENT when another client asked three minutes later. The server writes this list once a minute, and every second for a
minute after a change.

Examples:
  tacho environments clients --environment acme/production
  tacho environments clients --standing BEHIND --json`,
    )
    .action(clients)
}

async function list(options: ListOptions): Promise<void> {
  const client = connect(options)
  const { workspace: givenWorkspace } = options
  const { archived } = options
  const workspaces =
    givenWorkspace === undefined
      ? await allWorkspaces(client, archived)
      : [await findWorkspace(client, givenWorkspace, archived)]
  const items: (Environment & { workspaceName: string })[] = []
  for (const workspace of workspaces) {
    for (const environment of await environmentsOf(client, workspace, archived)) {
      items.push({ ...environment, workspaceName: workspace.name })
    }
  }
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [
      { title: 'ENVIRONMENT' },
      { title: 'ID', as: 'whole' },
      { title: 'CREATED', as: 'time' },
      ...(archived
        ? ([
            { title: 'ARCHIVED', as: 'time' },
            { title: 'DELETED AT', as: 'time' },
          ] as const)
        : []),
    ],
    items.map(({ workspaceName, name, id, createdAt, archivedAt, deleteAt }) => [
      `${workspaceName}/${name}`,
      id,
      createdAt,
      ...(archived ? [archivedAt ?? 'no', deleteAt ?? 'never'] : []),
    ]),
    'No environments. `tacho environments create <name>` makes one.',
  )
}

async function create(name: string, options: CreateOptions): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  let environment: Environment | undefined
  let made = true
  try {
    environment = await client.createEnvironment({ params: { workspaceId: workspace.id }, body: { name } })
  } catch (error) {
    if (!(options.ifNotExists && error instanceof Refused && error.result.code === 'conflict')) throw error
    environment = (await environmentsOf(client, workspace)).find((one) => one.name === name)
    if (!environment) throw error
    made = false
  }
  const fullName = printable(`${workspace.name}/${environment.name}`)
  if (options.json) printJson({ ...environment, workspaceName: workspace.name })
  else printLine(`Environment ${fullName} ${made ? 'created' : 'already exists'} (${environment.id}).`)
}

async function remove(environmentName: string, options: DeleteOptions): Promise<void> {
  const client = connect(options)
  const { environment, name } = await findPlace(client, environmentName, '<environment>', true)
  if (!(await mayDelete(name, options))) return
  const deleted = await client.deleteEnvironment({ params: { environmentId: environment.id } })
  if (options.json) return printJson(deleted)
  printLine(`Environment ${printable(name)} is deleted at ${deleted.deleteAt}, with all its data.`)
  printLine(`To keep it: tacho environments restore ${printable(name)}`)
}

async function mayDelete(name: string, { yes, json }: DeleteOptions): Promise<boolean> {
  if (yes) return true
  if (!json && process.stdin.isTTY && process.stdout.isTTY) {
    const { confirm } = await import('@clack/prompts')
    const message = `Delete ${printable(name)} with all its data, ${LIMITS.environmentDeletionDays} days from now?`
    if ((await confirm({ message, initialValue: false })) === true) return true
  }
  process.stderr.write('Nothing was changed; add --yes to delete the environment.\n')
  process.exitCode = 1
  return false
}

async function clients(options: ClientsOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const params = { environmentId }
  const { standing } = options
  // One row is enough, because the counts cover all clients.
  const { revision, counts } = await client.listConfigurationClients({ params, query: { limit: 1 } })
  const items = await allItems(client.listConfigurationClients, { params, query: { standing, limit: 200 } })
  if (options.json) return printJson({ revision, counts, items })
  const { current, updating, behind, silent } = counts
  const asking = current + updating + behind
  printLine(`${current} of ${asking} clients have revision ${revision.slice(0, 12)}; ${silent} silent.`)
  if (items.length === 0) return
  printTable(
    [{ title: 'CLIENT' }, { title: 'STANDING' }, { title: 'REVISION' }, { title: 'LAST SEEN', as: 'time' }],
    items.map(({ clientId, identifiedBy, standing: is, revision: has, lastSeenAt }) => [
      identifiedBy === 'key' ? `key ${clientId}` : clientId,
      is,
      has.slice(0, 12),
      lastSeenAt,
    ]),
  )
}

/** `tacho environments stalled-rule`: shows or changes when running runs count as stalled. */

interface Options extends EnvironmentOptions {
  idle?: number
  close?: ClosedAs | 'never'
}

function addStalledRule(environments: Command): void {
  inEnvironment(
    environments
      .command('stalled-rule')
      .description('show or change when running runs count as stalled, and what closes them'),
  )
    .option('--idle <minutes>', 'stalled after so long without an event', wholeNumber(LIMITS.stalledMinutesMax))
    .addOption(new Option('--close <status>', 'close stalled runs as this').choices(['FAILED', 'CANCELLED', 'never']))
    .addHelpText(
      'after',
      `
A run that waits for an approval is not stalled. A closed run says that its process went silent. Its next event opens it
again, and an outcome decides.

Examples:
  tacho environments stalled-rule
  tacho environments stalled-rule --idle 60 --close FAILED -e acme/production
  tacho environments stalled-rule --close never`,
    )
    .action(stalledRule)
}

async function stalledRule(options: Options): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { idle, close, json } = options
  const params = { environmentId }
  const body = {
    ...(idle !== undefined && { idleMinutes: idle }),
    ...(close !== undefined && { closeAs: close === 'never' ? null : close }),
  }
  const isChange = Object.keys(body).length > 0
  const rule = isChange ? await client.changeStalledRule({ params, body }) : await client.readStalledRule({ params })
  if (json) printJson(rule)
  else printLine(spokenRule(rule))
}

function spokenRule({ idleMinutes, closeAs, closeAfterMinutes, source }: StalledRule): string {
  const after = `A running run is stalled after ${counted(idleMinutes, 'minute')} without an event`
  const closed =
    closeAfterMinutes === idleMinutes ? 'and is closed' : `and closed after ${counted(closeAfterMinutes, 'minute')}`
  const then = closeAs === null ? 'and stays open' : `${closed} as ${closeAs}`
  return `${after}, ${then}${source === 'default' ? ' (default)' : ''}.`
}
