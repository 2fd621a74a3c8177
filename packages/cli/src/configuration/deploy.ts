/** deploy, undeploy, promote and rollback: the same for prompts and policies. */
import type { DeployableKind, PublicationResult } from '@tacho/contract/operator/deployment.ts'
import type { Command } from 'commander'
import { connect, inEnvironment, type EnvironmentOptions, type ServerOptions, asOperator } from '../options.ts'
import { printable, printJson, printLine } from '../output.ts'
import { wrongUsage } from '../stop.ts'
import { findPlace } from '../tenants.ts'
import { findItem } from './noun.ts'

interface NoteOptions {
  note?: string
}

interface DeployOptions extends EnvironmentOptions, NoteOptions {
  number?: string
}

interface PromoteOptions extends ServerOptions, NoteOptions {
  from: string
  to: string
  all?: true
}

/** Adds the four commands to `prompts` or `policies`. `one` is what a single item is called on the command line. */
export function addDeploying(commands: Command, kind: DeployableKind, one: string): void {
  const plural = commands.name()

  inEnvironment(commands.command(`deploy <${one}>`).description(`put a version of a ${kind} in force`))
    .option('--number <version>', 'the newest when left out')
    .option('--note <text>', 'why')
    .addHelpText(
      'after',
      `\nAll nodes serve it within a second.\n\nExample:\n  tacho ${plural} deploy refunds --environment acme/staging`,
    )
    .action((name: string, options: DeployOptions) => deploy(kind, name, options))

  inEnvironment(commands.command(`undeploy <${one}>`).description(`take a ${kind} out of force`))
    .option('--note <text>', 'why')
    .addHelpText('after', `\nExample:\n  tacho ${plural} undeploy refunds --environment acme/staging`)
    .action((name: string, options: DeployOptions) => undeploy(kind, name, options))

  inEnvironment(commands.command(`rollback <${one}>`).description(`put the version before the present one in force`))
    .option('--note <text>', 'why')
    .addHelpText(
      'after',
      `\nOnce more, and it is the one before that.\n\nExample:\n  tacho ${plural} rollback refunds --environment acme/production`,
    )
    .action((name: string, options: DeployOptions) => rollBack(kind, name, options))

  asOperator(
    commands.command(`promote [${one}...]`).description('put in force what is in force in another environment'),
  )
    .requiredOption('--from <workspace/environment>', 'where to take it from')
    .requiredOption('--to <workspace/environment>', 'where to put it in force')
    .option('--all', 'every prompt and every policy; what only the other environment has stays there')
    .option('--note <text>', 'why')
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
  const { client, place, item } = await target(kind, name, options)
  const version = options.number ?? item.newest
  const result = await client.deploy({
    params: { environmentId: place.environment.id },
    body: { items: [{ kind, id: item.id, version }], ...noteOf(options) },
  })
  tell(result, place.name, options, `Version ${version} of ${kind} ${printable(item.name)} is in force there already.`)
}

async function undeploy(kind: DeployableKind, name: string, options: DeployOptions): Promise<void> {
  const { client, place, item } = await target(kind, name, options)
  const result = await client.deploy({
    params: { environmentId: place.environment.id },
    body: { items: [{ kind, id: item.id, version: null }], ...noteOf(options) },
  })
  tell(result, place.name, options, `No version of ${kind} ${printable(item.name)} is in force there.`)
}

async function rollBack(kind: DeployableKind, name: string, options: DeployOptions): Promise<void> {
  const { client, place, item } = await target(kind, name, options)
  const result = await client.rollBack({
    params: { environmentId: place.environment.id },
    body: { items: [{ kind, id: item.id }], ...noteOf(options) },
  })
  tell(result, place.name, options, 'There was nothing to change.')
}

async function promote(kind: DeployableKind, names: string[], options: PromoteOptions): Promise<void> {
  if (options.all && names.length > 0) throw wrongUsage('Give either names or --all.')
  if (!options.all && names.length === 0) throw wrongUsage('Name what to promote, or give --all for everything.')
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
  tell(result, to.name, options, `The same versions are in force in ${printable(to.name)} already.`)
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
  for (const { kind, name, from, to } of result.changes) {
    const item = `${kind} ${printable(name)}`
    const place = printable(environment)
    if (to === null) printLine(`${item} is not in force in ${place} any more (it was version ${from}).`)
    else printLine(`${item} is in force in ${place} with version ${to} (before: ${from ?? 'none'}).`)
  }
  printLine(`Revision ${result.revision}.`)
}
