import { allItems } from '@tacho/client/items.ts'
import type { Command } from 'commander'
import { addDeploying } from './deploy.ts'
import { diffLines, diffQuery, inForce, spokenPlaces, findItem } from './versioned-item.ts'
import { results } from './prompt-results.ts'
import { readSource } from './source-file.ts'
import { addLife, type WorkspaceOptions } from '../data/archive.ts'
import { asOperator, connect, inEnvironment } from '../engine/options.ts'
import { authorText, printable, printEmpty, printJson, printLine, printTable, spokenBytes } from '../engine/output.ts'
import { findWorkspace } from '../tenants/tenants.ts'
import { wrongUsage } from '../engine/stop.ts'

interface ShowOptions extends WorkspaceOptions {
  number?: string
  history?: true
}

interface WriteOptions extends WorkspaceOptions {
  file?: string
  content?: string
  note?: string
}

export function addPrompts(prompts: Command): void {
  inWorkspace(prompts.command('list').description('list prompts and where they are deployed'))
    .option('--archived', 'archived ones too')
    .addHelpText('after', '\nExamples:\n  tacho prompts list --workspace acme\n  tacho prompts list --archived')
    .action(list)

  inWorkspace(prompts.command('show <prompt>').description('print a prompt unchanged; by name or id'))
    .option('--number <version>', 'default: the newest')
    .option('--history', 'list its versions')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho prompts show greeting --number 2 > greeting.md\n  tacho prompts show greeting --history',
    )
    .action(show)

  inWorkspace(prompts.command('create <name>').description('create a prompt with its first version'))
    .option('-f, --file <file>', 'file with the prompt; - reads standard input')
    .option('--content <text>', 'the prompt itself')
    .option('--note <text>', 'purpose of the prompt')
    .addHelpText('after', '\nExample:\n  tacho prompts create greeting --file prompts/greeting.md')
    .action(create)

  inWorkspace(prompts.command('push <prompt>').description('write a new version, without deploying it'))
    .option('-f, --file <file>', 'file with the prompt; - reads standard input')
    .option('--content <text>', 'the prompt itself')
    .option('--note <text>', 'what changed, and why')
    .addHelpText(
      'after',
      '\nA file equal to the newest version changes nothing.\n\nExample:\n  tacho prompts push greeting --file prompts/greeting.md --note "Shorter"',
    )
    .action(push)

  inWorkspace(prompts.command('diff <prompt> [from] [to]').description('compare two versions; default: the newest two'))
    .addHelpText('after', '\nExamples:\n  tacho prompts diff greeting\n  tacho prompts diff greeting 2 5')
    .action(diff)

  inEnvironment(prompts.command('results <prompt>').description('compare what the runs of each version did'))
    .addHelpText('after', '\nExample:\n  tacho prompts results greeting --environment acme/production')
    .action(results)

  addDeploying(prompts, 'prompt', 'prompt')

  addLife(prompts, {
    noun: 'prompt',
    example: 'greeting',
    archiving: 'it can no longer be deployed. Refused while it is deployed',
    restoring: 'it can be deployed again',
    within: 'workspace',
    async find(client, promptName, { workspace }) {
      const { id: workspaceId } = await findWorkspace(client, workspace)
      const { id, name } = await findItem(client, workspaceId, 'prompt', promptName)
      return { params: { workspaceId, promptId: id }, name }
    },
    rename: (client, promptRequest) => client.renamePrompt(promptRequest),
    archive: (client, promptRequest) => client.archivePrompt(promptRequest),
    restore: (client, promptRequest) => client.restorePrompt(promptRequest),
  })
}

function inWorkspace(command: Command): Command {
  return asOperator(command).option('-w, --workspace <workspace>', 'name or id; optional if there is only one')
}

async function list(options: WorkspaceOptions & { archived?: true }): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const query = options.archived ? { archived: 'true' as const } : {}
  const items = await allItems(client.listPrompts, { params: { workspaceId: workspace.id }, query })
  const places = await inForce(client, workspace, 'prompt')
  if (options.json) {
    return printJson({
      items: items.map((prompt) => ({ ...prompt, inForce: places.get(prompt.promptId) ?? [] })),
      hasMore: false,
    })
  }
  if (items.length === 0)
    return printEmpty('No prompts. `tacho prompts create` creates one, `tacho apply` those of a file.')
  printTable(
    [
      { title: 'NAME' },
      { title: 'NEWEST' },
      { title: 'DEPLOYED' },
      { title: 'SIZE', isOptional: true },
      { title: 'AUTHOR' },
      { title: 'WRITTEN', as: 'time' },
    ],
    items.map(({ promptId, name, newest, archivedAt }) => [
      name,
      newest.damaged ? `${newest.version}, damaged` : newest.version,
      archivedAt === null ? spokenPlaces(places.get(promptId)) : 'archived',
      spokenBytes(newest.contentBytes),
      authorText(newest.author, newest.importedAt),
      newest.createdAt,
    ]),
  )
}

async function show(name: string, options: ShowOptions): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const { id: promptId, newest } = await findItem(client, workspace.id, 'prompt', name)
  const params = { workspaceId: workspace.id, promptId }
  if (options.history) {
    const items = await allItems(client.listPromptVersions, { params })
    if (options.json) return printJson({ items, hasMore: false })
    return printTable(
      [
        { title: 'VERSION' },
        { title: 'WRITTEN', as: 'time' },
        { title: 'AUTHOR' },
        { title: 'SIZE', isOptional: true },
        { title: 'NOTE', as: 'text' },
      ],
      items.map((row) => [
        row.damaged ? `${row.version}, damaged` : row.version,
        row.createdAt,
        authorText(row.author, row.importedAt),
        spokenBytes(row.contentBytes),
        row.note ?? '',
      ]),
    )
  }
  const version = await client.readPromptVersion({
    params: { ...params, version: options.number ?? newest },
  })
  if (options.json) return printJson(version)
  // Escape control characters only for a terminal; a file or pipe gets the exact text.
  if (!process.stdout.isTTY) process.stdout.write(version.content)
  else for (const line of version.content.split('\n')) printLine(printable(line))
}

async function create(name: string, options: WriteOptions): Promise<void> {
  const content = await contentOf(options)
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const prompt = await client.createPrompt({
    params: { workspaceId: workspace.id },
    body: { name, content, note: options.note ?? null },
  })
  if (options.json) printJson(prompt)
  else printLine(`Prompt ${printable(name)} created (${prompt.promptId}), version 1. It is not deployed yet.`)
}

async function contentOf({ file, content }: WriteOptions): Promise<string> {
  if ((file === undefined) === (content === undefined)) throw wrongUsage('Give the prompt with --file or --content.')
  if (content === '') throw wrongUsage('--content is empty.')
  return content ?? readSource(file ?? '-')
}

async function push(name: string, options: WriteOptions): Promise<void> {
  const content = await contentOf(options)
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const { id: promptId } = await findItem(client, workspace.id, 'prompt', name)
  const saved = await client.createPromptVersion({
    params: { workspaceId: workspace.id, promptId },
    body: { content, note: options.note ?? null },
  })
  if (options.json) return printJson(saved)
  if (saved.isNew) printLine(`Version ${saved.version} of ${printable(name)} written. It is not deployed yet.`)
  else printLine(`Version ${saved.version} of ${printable(name)} already has this content; nothing was written.`)
}

async function diff(
  name: string,
  from: string | undefined,
  to: string | undefined,
  options: WorkspaceOptions,
): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const { id: promptId, newest } = await findItem(client, workspace.id, 'prompt', name)
  const query = diffQuery(newest, from, to)
  const textDiff = await client.diffPromptVersions({ params: { workspaceId: workspace.id, promptId }, query })
  if (options.json) return printJson(textDiff)
  if (textDiff.fields.length === 0) printLine(`Versions ${query.from} and ${query.to} are equal.`)
  for (const line of diffLines(textDiff)) printLine(line)
}
