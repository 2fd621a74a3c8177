import { allItems } from '@tacho/client/items.ts'
import type { ClientStanding } from '@tacho/contract/operator/configuration-client.ts'
import type { Environment } from '@tacho/contract/operator/environment.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/words.ts'
import { Option, type Command } from 'commander'
import { connected } from '../calls/connected.ts'
import { Refused } from '../calls/operator-client.ts'
import { asOperator, connect, inEnvironment, type EnvironmentOptions, type ServerOptions } from '../settings/options.ts'
import { printable, printJson, printLine, printTable } from '../terminal/output.ts'
import { allWorkspaces, environmentsOf, findWorkspace } from '../calls/tenants.ts'

interface ListOptions extends ServerOptions {
  workspace?: string
}

interface ClientsOptions extends EnvironmentOptions {
  standing?: ClientStanding
}

interface CreateOptions extends ListOptions {
  ifNotExists?: true
}

export function addEnvironments(environments: Command): void {
  asOperator(environments.command('list').description('list environments of one workspace or all'))
    .option('-w, --workspace <workspace>', 'name or id; default: all')
    .addHelpText('after', '\nExamples:\n  tacho environments list\n  tacho environments list --workspace acme --json')
    .action(list)

  asOperator(environments.command('create <name>').description('create an environment in a workspace'))
    .option('-w, --workspace <workspace>', 'name or id; optional if there is only one')
    .option('--if-not-exists', 'succeed if it already exists')
    .addHelpText('after', '\nExample:\n  tacho environments create production --workspace acme --if-not-exists')
    .action(create)

  inEnvironment(environments.command('clients').description('list the clients of the configuration and what each has'))
    .addOption(new Option('--standing <standing>', 'only clients of this standing').choices(CLIENT_STANDINGS))
    .addHelpText(
      'after',
      `
A client is CURRENT with the revision of the environment, UPDATING for two minutes after a change, then BEHIND. It is
SILENT when another client asked ten minutes later. The server writes this list once a minute.

Examples:
  tacho environments clients --environment acme/production
  tacho environments clients --standing BEHIND --json`,
    )
    .action(clients)
}

async function list(options: ListOptions): Promise<void> {
  const client = connect(options)
  const { workspace: given } = options
  const workspaces = given === undefined ? await allWorkspaces(client) : [await findWorkspace(client, given)]
  const items: (Environment & { workspaceName: string })[] = []
  for (const workspace of workspaces) {
    for (const environment of await environmentsOf(client, workspace)) {
      items.push({ ...environment, workspaceName: workspace.name })
    }
  }
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [{ title: 'ENVIRONMENT' }, { title: 'ID', as: 'whole' }, { title: 'CREATED', as: 'time' }],
    items.map(({ workspaceName, name, id, createdAt }) => [`${workspaceName}/${name}`, id, createdAt]),
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

async function clients(options: ClientsOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const params = { environmentId }
  const { standing } = options
  // The counts are of all clients, so one row is enough for them.
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
