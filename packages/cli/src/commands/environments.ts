import type { Environment } from '@tacho/contract/operator/environment.ts'
import type { Command } from 'commander'
import { Refused } from '../calls/operator-client.ts'
import { asOperator, connect, type ServerOptions } from '../settings/options.ts'
import { printable, printJson, printLine, printTable } from '../terminal/output.ts'
import { allWorkspaces, environmentsOf, findWorkspace } from '../calls/tenants.ts'

interface ListOptions extends ServerOptions {
  workspace?: string
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
  if (options.json) return printJson({ items })
  printTable(
    [{ title: 'ENVIRONMENT' }, { title: 'ID' }, { title: 'CREATED' }],
    items.map(({ workspaceName, name, id, createdAt }) => [`${workspaceName}/${name}`, id, createdAt]),
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
