import type { PolicyVersion } from '@tacho/contract/operator/policy.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { POLICY_ACTIONS, SEVERITIES, type PolicyAction, type Severity } from '@tacho/contract/runtime-config.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { assertCondition, check } from '../configuration/check.ts'
import { addDeploying } from '../configuration/deploy.ts'
import { diffLines, diffQuery } from '../configuration/diff-lines.ts'
import { inForce, spokenPlaces } from '../configuration/in-force.ts'
import { findItem } from '../configuration/noun.ts'
import { printResult, runSimulation } from '../configuration/simulate.ts'
import { readCondition } from '../configuration/source-file.ts'
import type { OperatorClient } from '../operator-client.ts'
import {
  asOperator,
  connect,
  inEnvironment,
  wholeNumber,
  withJson,
  type EnvironmentOptions,
  type ServerOptions,
} from '../options.ts'
import { printable, printJson, printLine, printTable } from '../output.ts'
import { wrongUsage } from '../stop.ts'
import { findPlace, findWorkspace } from '../tenants.ts'

interface WorkspaceOptions extends ServerOptions {
  workspace?: string
}

interface ShowOptions extends WorkspaceOptions {
  number?: string
  history?: true
}

interface SourceOptions {
  file?: string
  condition?: string
}

interface PushOptions extends WorkspaceOptions, SourceOptions {
  severity?: Severity
  action?: PolicyAction
  name?: string
  description?: string
  note?: string
}

interface SimulateOptions extends EnvironmentOptions, SourceOptions {
  number?: string
  severity?: Severity
  action?: PolicyAction
  days: number
}

export function addPolicies(program: Command): void {
  const policies = program.command('policies').description('what agents may do: conditions on tool calls, in versions')
  addReading(policies)
  addWriting(policies)
  addTrying(policies)
  addDeploying(policies, 'policy', 'policy')
}

function addReading(policies: Command): void {
  inWorkspace(policies.command('list').description('list policies, and where they are in force'))
    .addHelpText('after', '\nExample:\n  tacho policies list --workspace acme')
    .action(list)

  inWorkspace(policies.command('show <policy>').description('show a policy'))
    .option('--number <version>', 'the newest when left out')
    .option('--history', 'list its versions instead')
    .addHelpText('after', '\nExample:\n  tacho policies show refunds --number 2')
    .action(show)

  inWorkspace(
    policies.command('diff <policy> [from] [to]').description('compare two versions; the newest two unless told'),
  )
    .addHelpText('after', '\nExamples:\n  tacho policies diff refunds\n  tacho policies diff refunds 2 5')
    .action(diff)
}

function addWriting(policies: Command): void {
  const about = (command: Command): Command =>
    withSource(inWorkspace(command))
      .option('--severity <severity>', SEVERITIES.join(', '), oneOf(SEVERITIES))
      .option('--action <action>', POLICY_ACTIONS.join(', '), oneOf(POLICY_ACTIONS))
      .option('--name <text>', 'for people')
      .option('--description <text>', 'what it is for')
      .option('--note <text>', 'what changed, and why')

  about(policies.command('create <policyId>').description('create a policy with its first version'))
    .addHelpText(
      'after',
      '\nExample:\n  tacho policies create refunds --file refunds.cel --severity HIGH --action REQUIRE_APPROVAL',
    )
    .action(create)

  about(policies.command('push <policy>').description('write a new version; it is not in force until deployed'))
    .addHelpText(
      'after',
      '\nWhat is left out stays as it is in the newest version.\n\nExample:\n  tacho policies push refunds --file refunds.cel --note "Only large ones"',
    )
    .action(push)
}

function addTrying(policies: Command): void {
  withJson(policies.command('check [file...]').description('check conditions without a server; - reads standard input'))
    .option('--condition <expression>', 'the condition itself')
    .addHelpText(
      'after',
      '\nThe exit code is 1 when one is wrong.\n\nExamples:\n  tacho policies check policies/*.cel\n  tacho policies check --condition \'tool.name == "refund"\'',
    )
    .action(check)

  withSource(inEnvironment(policies.command('simulate [policy]').description('try a policy on recorded tool calls')))
    .option('--number <version>', 'of the policy; the newest when left out')
    .option('--severity <severity>', SEVERITIES.join(', '), oneOf(SEVERITIES))
    .option('--action <action>', POLICY_ACTIONS.join(', '), oneOf(POLICY_ACTIONS))
    .option('--days <number>', 'how far back to look', wholeNumber(LIMITS.simulationDaysMax), 7)
    .addHelpText(
      'after',
      `
Ctrl-C cancels it. Nothing is deployed.

Examples:
  tacho policies simulate refunds --environment acme/production --days 30
  tacho policies simulate --file refunds.cel --action BLOCK
  tacho policies simulate --condition 'tool.name == "refund"' --action REQUIRE_APPROVAL --json`,
    )
    .action(simulate)
}

function inWorkspace(command: Command): Command {
  return asOperator(command).option(
    '-w, --workspace <workspace>',
    'name or id; may be left out where there is only one',
  )
}

function withSource(command: Command): Command {
  return command
    .option('-f, --file <file>', 'file with the condition; - reads standard input')
    .option('--condition <expression>', 'the condition itself')
}

function oneOf<Value extends string>(values: readonly Value[]): (text: string) => Value {
  return (text) => {
    const value = values.find((known) => known === text.toUpperCase())
    if (value !== undefined) return value
    throw new InvalidArgumentError(`It must be one of ${values.join(', ')}.`)
  }
}

async function list(options: WorkspaceOptions): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const items = await client.allItems('listPolicies', { params: { workspaceId: workspace.id } })
  const places = await inForce(client, workspace, 'policy')
  if (options.json) {
    return printJson({ items: items.map((policy) => ({ ...policy, inForce: places.get(policy.policyId) ?? [] })) })
  }
  printTable(
    ['POLICY', 'NEWEST', 'IN FORCE', 'SEVERITY', 'ACTION', 'NAME'].map((title) => ({ title })),
    items.map(({ policyId, newest }) => [
      policyId,
      newest.version,
      spokenPlaces(places.get(policyId)),
      newest.severity,
      newest.action,
      newest.name,
    ]),
  )
}

async function show(policyId: string, options: ShowOptions): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const { newest } = await findItem(client, workspace.id, 'policy', policyId)
  const params = { workspaceId: workspace.id, policyId }
  if (options.history) {
    const items = await client.allItems('listPolicyVersions', { params })
    if (options.json) return printJson({ items })
    return printTable(
      ['VERSION', 'WRITTEN', 'AUTHOR', 'SEVERITY', 'ACTION', 'NOTE'].map((title) => ({ title })),
      items.map((row) => [row.version, row.createdAt, row.author, row.severity, row.action, row.note ?? '']),
    )
  }
  const version = await readVersion(client, params, options.number ?? newest)
  if (options.json) return printJson(version)
  printLine(`${printable(version.policyId)}  version ${version.version}  ${version.severity}  ${version.action}`)
  if (version.name !== policyId) printLine(`Name         ${printable(version.name)}`)
  if (version.description !== null) printLine(`Description  ${printable(version.description)}`)
  printLine(`Written      ${version.createdAt} by ${printable(version.author)}`)
  if (version.note !== null) printLine(`Note         ${printable(version.note)}`)
  printLine()
  for (const line of version.condition.split(/\r?\n/)) printLine(printable(line))
}

function readVersion(
  client: OperatorClient,
  params: { workspaceId: string; policyId: string },
  version: string,
): Promise<PolicyVersion> {
  return client.call('readPolicyVersion', { params: { ...params, version } })
}

async function diff(
  policyId: string,
  from: string | undefined,
  to: string | undefined,
  options: WorkspaceOptions,
): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const { newest } = await findItem(client, workspace.id, 'policy', policyId)
  const query = diffQuery(newest, from, to)
  const found = await client.call('diffPolicyVersions', { params: { workspaceId: workspace.id, policyId }, query })
  if (options.json) return printJson(found)
  if (found.fields.length === 0) printLine(`Versions ${query.from} and ${query.to} say the same.`)
  for (const line of diffLines(found)) printLine(line)
}

async function create(policyId: string, options: PushOptions): Promise<void> {
  const { severity, action, name, description, note } = options
  const condition = await sourceOf(options)
  if (condition === null) throw wrongUsage('Give the condition with --file or --condition.')
  if (severity === undefined || action === undefined) throw wrongUsage('Give --severity and --action.')
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const policy = await client.call('createPolicy', {
    params: { workspaceId: workspace.id },
    body: {
      policyId,
      condition,
      severity,
      action,
      name: name ?? null,
      description: description ?? null,
      note: note ?? null,
    },
  })
  if (options.json) printJson(policy)
  else printLine(`Policy ${printable(policyId)} created, version 1. It is not in force yet.`)
}

async function push(policyId: string, options: PushOptions): Promise<void> {
  const { severity, action, name, description, note } = options
  const condition = await sourceOf(options)
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const params = { workspaceId: workspace.id, policyId }
  const { newest } = await findItem(client, workspace.id, 'policy', policyId)
  const now = await readVersion(client, params, newest)
  const saved = await client.call('createPolicyVersion', {
    params,
    body: {
      condition: condition ?? now.condition,
      severity: severity ?? now.severity,
      action: action ?? now.action,
      name: name ?? now.name,
      description: description ?? now.description,
      note: note ?? null,
      // What is left out was taken from that version: nobody may have changed it meanwhile.
      follows: newest,
    },
  })
  if (options.json) return printJson(saved)
  if (saved.isNew) printLine(`Version ${saved.version} of ${printable(policyId)} written. It is not in force yet.`)
  else printLine(`Version ${saved.version} of ${printable(policyId)} says the same; nothing was written.`)
}

/** Null: none was given. */
async function sourceOf({ file, condition }: SourceOptions): Promise<string | null> {
  if (file !== undefined && condition !== undefined) throw wrongUsage('Give either --file or --condition.')
  const source = file === undefined ? condition : await readCondition(file)
  if (source === undefined) return null
  assertCondition(file ?? 'condition', source)
  return source
}

async function simulate(policyId: string | undefined, options: SimulateOptions): Promise<void> {
  const source = await sourceOf(options)
  if ((policyId === undefined) === (source === null)) {
    throw wrongUsage('Name a policy, or give a condition with --file or --condition.')
  }
  const client = connect(options)
  const place = await findPlace(client, options.environment, '--environment')
  const said = policyId === undefined ? null : await policyOf(client, place.workspace.id, policyId, options.number)
  const action = options.action ?? said?.action
  if (action === undefined) throw wrongUsage('Give --action: what the policy would do with a matching call.')
  const severity = options.severity ?? said?.severity ?? 'MEDIUM'
  const condition = source ?? said?.condition ?? ''
  const body = { condition, action, severity, days: options.days }
  const simulation = await runSimulation(client, place.environment.id, body)
  if (options.json) printJson(simulation)
  else if (simulation.result) printResult(action, severity, simulation.result)
}

async function policyOf(client: OperatorClient, workspaceId: string, policyId: string, version: string | undefined) {
  const { newest } = await findItem(client, workspaceId, 'policy', policyId)
  return readVersion(client, { workspaceId, policyId }, version ?? newest)
}
