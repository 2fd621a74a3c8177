import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import type { Command } from 'commander'
import { Refused } from '../engine/operator-client.ts'
import { addLife } from '../data/archive.ts'
import { asOperator, connect, type ServerOptions } from '../engine/options.ts'
import { printable, printJson, printLine, printTable } from '../engine/output.ts'
import { allWorkspaces, findWorkspace } from './tenants.ts'

interface ListOptions extends ServerOptions {
  archived?: true
}

interface CreateOptions extends ServerOptions {
  ifNotExists?: true
}

export function addWorkspaces(workspaces: Command): void {
  asOperator(workspaces.command('list').description('list workspaces'))
    .option('--archived', 'archived ones too')
    .addHelpText('after', '\nExamples:\n  tacho workspaces list\n  tacho workspaces list --json')
    .action(list)

  asOperator(workspaces.command('create <name>').description('create a workspace'))
    .option('--if-not-exists', 'succeed if it already exists')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho workspaces create acme\n  tacho workspaces create acme --if-not-exists --json',
    )
    .action(create)

  addLife(workspaces, {
    noun: 'workspace',
    example: 'acme',
    archiving: 'the API keys of its environments are refused',
    restoring: 'its API keys work again',
    within: null,
    async find(client, workspaceName) {
      const { id, name } = await findWorkspace(client, workspaceName, true)
      return { params: { workspaceId: id }, name }
    },
    rename: (client, workspaceRequest) => client.renameWorkspace(workspaceRequest),
    archive: (client, workspaceRequest) => client.archiveWorkspace(workspaceRequest),
    restore: (client, workspaceRequest) => client.restoreWorkspace(workspaceRequest),
  })
}

async function list(options: ListOptions): Promise<void> {
  const { archived } = options
  const items = await allWorkspaces(connect(options), archived)
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [
      { title: 'NAME' },
      { title: 'ID', as: 'whole' },
      { title: 'CREATED', as: 'time' },
      ...(archived ? ([{ title: 'ARCHIVED', as: 'time' }] as const) : []),
    ],
    items.map(({ name, id, createdAt, archivedAt }) => [
      name,
      id,
      createdAt,
      ...(archived ? [archivedAt ?? 'no'] : []),
    ]),
    'No workspaces. `tacho workspaces create <name>` makes one.',
  )
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
