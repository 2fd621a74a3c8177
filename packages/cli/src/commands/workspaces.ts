import type { Workspace } from '@tacho/contract/operator/workspace.ts'
import type { Command } from 'commander'
import { Refused } from '../calls/operator-client.ts'
import { asOperator, connect, type ServerOptions } from '../settings/options.ts'
import { printable, printJson, printLine, printTable } from '../terminal/output.ts'
import { allWorkspaces, findWorkspace } from '../calls/tenants.ts'

interface CreateOptions extends ServerOptions {
  ifNotExists?: true
}

export function addWorkspaces(workspaces: Command): void {
  asOperator(workspaces.command('list').description('list workspaces'))
    .addHelpText('after', '\nExamples:\n  tacho workspaces list\n  tacho workspaces list --json')
    .action(list)

  asOperator(workspaces.command('create <name>').description('create a workspace'))
    .option('--if-not-exists', 'succeed if it already exists')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho workspaces create acme\n  tacho workspaces create acme --if-not-exists --json',
    )
    .action(create)
}

async function list(options: ServerOptions): Promise<void> {
  const items = await allWorkspaces(connect(options))
  if (options.json) printJson({ items, hasMore: false })
  else
    printTable(
      [{ title: 'NAME' }, { title: 'ID', as: 'whole' }, { title: 'CREATED', as: 'time' }],
      items.map(row),
      'No workspaces. `tacho workspaces create <name>` makes one.',
    )
}

function row({ name, id, createdAt }: Workspace): string[] {
  return [name, id, createdAt]
}

async function create(name: string, options: CreateOptions): Promise<void> {
  const client = connect(options)
  let workspace: Workspace
  let made = true
  try {
    workspace = await client.createWorkspace({ body: { name } })
  } catch (error) {
    if (!(options.ifNotExists && error instanceof Refused && error.result.code === 'conflict')) throw error
    workspace = await findWorkspace(client, name)
    made = false
  }
  if (options.json) printJson(workspace)
  else printLine(`Workspace ${printable(workspace.name)} ${made ? 'created' : 'already exists'} (${workspace.id}).`)
}
