import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  Retention,
  RetentionChange,
  RetentionCounts,
  RetentionPreview,
  RetentionSettings,
  WorkspaceRetention,
} from '@tacho/contract/data/retention.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { findWorkspace } from '../tenants/tenants.ts'
import { connect, inEnvironment, type EnvironmentOptions } from '../engine/options.ts'
import { wrongUsage } from '../engine/stop.ts'
import { canAsk, confirmed } from '../engine/ask.ts'
import { counted, printJson, printLine, spokenBytes, spokenNumber, strong } from '../engine/output.ts'

const FOREVER = 'forever'

interface Options extends EnvironmentOptions {
  runs?: number | typeof FOREVER
  payloads?: number | typeof FOREVER
  issues?: number | typeof FOREVER
  approvals?: number | typeof FOREVER
  audit?: number | typeof FOREVER
  keepOpenIssueRuns?: boolean
  workspace?: string
  inherit?: true
  yes?: true
}

const EXAMPLES = `
<days> is a number of days, or "forever".

Examples:
  tacho retention preview --runs 90 --payloads 30
  tacho retention set --runs 90 --payloads 30 -e acme/production
  tacho retention set --workspace acme --audit 365
  tacho retention set --runs forever --payloads forever
  tacho retention set --inherit`

export function addRetention(retention: Command): void {
  withWorkspace(inEnvironment(retention.command('show').description('how long things are kept, and what was removed')))
    .addHelpText('after', '\nExamples:\n  tacho retention show\n  tacho retention show --workspace acme')
    .action(show)

  withDays(inEnvironment(retention.command('preview').description('count what settings would remove now')))
    .addHelpText('after', EXAMPLES)
    .action(preview)

  withDays(withWorkspace(inEnvironment(retention.command('set').description('change how long things are kept'))))
    .option('--inherit', 'remove the settings of the environment, so that it follows its workspace')
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      `\nShows first what would be removed. Nothing changes without --yes or your confirmation on a terminal. What is removed
cannot be brought back. Settings that you do not name stay.\n${EXAMPLES}`,
    )
    .action(set)
}

function withWorkspace(command: Command): Command {
  return command.option('-w, --workspace <workspace>', 'name or id; its settings apply to environments that have none')
}

function withDays(command: Command): Command {
  return command
    .option('--runs <days>', 'keep runs, after their last event', parseDays)
    .option('--payloads <days>', 'keep payloads, after the last event of their run', parseDays)
    .option('--issues <days>', 'keep resolved and ignored issues', parseDays)
    .option('--approvals <days>', 'keep ended requests for approval', parseDays)
    .option('--audit <days>', `keep the audit log, at least ${LIMITS.retentionAuditDaysMin} days`, parseDays)
    .option('--keep-open-issue-runs', `keep the newest ${LIMITS.keptRunsOfIssue} runs of each open issue (default)`)
    .option('--no-keep-open-issue-runs', 'remove runs of open issues too')
}

/** Parses days: `30` or `30d`. It must not return null, which Commander turns into an empty text. */
export function parseDays(text: string): number | typeof FOREVER {
  if (text === FOREVER) return FOREVER
  const days = Number(/^([1-9][0-9]{0,3})d?$/.exec(text)?.[1])
  if (days <= LIMITS.retentionDays) return days
  throw new InvalidArgumentError(`It must be "forever" or whole days from 1 to ${LIMITS.retentionDays}, such as 30.`)
}

const daysOf = (given: number | typeof FOREVER): number | null => (given === FOREVER ? null : given)

/** The settings that the flags change. */
function changeOf({ runs, payloads, issues, approvals, audit, keepOpenIssueRuns }: Options): RetentionChange {
  return {
    ...(runs !== undefined && { runDays: daysOf(runs) }),
    ...(payloads !== undefined && { payloadDays: daysOf(payloads) }),
    ...(issues !== undefined && { issueDays: daysOf(issues) }),
    ...(approvals !== undefined && { approvalDays: daysOf(approvals) }),
    ...(audit !== undefined && { auditDays: daysOf(audit) }),
    ...(keepOpenIssueRuns !== undefined && { keepOpenIssueRuns }),
  }
}

async function show(options: Options): Promise<void> {
  if (options.workspace !== undefined) {
    const client = connect(options)
    const { id } = await findWorkspace(client, options.workspace)
    return printRetention(await client.readWorkspaceRetention({ params: { workspaceId: id } }), options)
  }
  const { client, environmentId } = await connected(options)
  printRetention(await client.readRetention({ params: { environmentId } }), options)
}

async function preview(options: Options): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { settings } = await client.readRetention({ params: { environmentId } })
  const counts = await previewOf(options, { ...settings, ...changeOf(options) })
  if (options.json) printJson(counts)
  else for (const line of previewLines(counts)) printLine(line)
}

async function previewOf(options: Options, settings: RetentionSettings): Promise<RetentionPreview> {
  const { client, environmentId } = await connected(options)
  const { keepOpenIssueRuns, ...days } = settings
  const named = Object.entries(days).filter(([, value]) => value !== null)
  const query = { ...Object.fromEntries(named), keepOpenIssueRuns: keepOpenIssueRuns ? 'true' : 'false' } as const
  return client.previewRetention({ params: { environmentId }, query })
}

async function set(options: Options): Promise<void> {
  const body = changeOf(options)
  const isNone = Object.keys(body).length === 0
  if (options.inherit && (!isNone || options.workspace !== undefined)) {
    throw wrongUsage('--inherit goes without other settings.')
  }
  if (isNone && !options.inherit) throw wrongUsage('Name a setting, such as --runs 90.')
  if (options.workspace !== undefined) {
    const client = connect(options)
    const { id } = await findWorkspace(client, options.workspace)
    const params = { workspaceId: id }
    await assertMayChange(options, 'Environments that follow the workspace remove what is older.')
    return printRetention(await client.changeWorkspaceRetention({ params, body }), options)
  }
  const { client, environmentId } = await connected(options)
  const params = { environmentId }
  if (options.inherit) {
    await assertMayChange(options, 'The environment will follow its workspace.')
    return printRetention(await client.inheritRetention({ params }), options)
  }
  if (!options.yes) {
    const { settings } = await client.readRetention({ params })
    for (const line of previewLines(await previewOf(options, { ...settings, ...body })))
      process.stderr.write(`${line}\n`)
  }
  await assertMayChange(options, 'This cannot be undone.')
  printRetention(await client.changeRetention({ params, body }), options)
}

async function assertMayChange({ yes, json }: Options, warning: string): Promise<void> {
  if (yes || (canAsk({ json }) && (await confirmed(`${warning} Change the settings?`)))) return
  throw wrongUsage('Nothing was changed; add --yes to change the settings.')
}

const NAMES = {
  runDays: 'Runs',
  payloadDays: 'Payloads',
  issueDays: 'Issues',
  approvalDays: 'Approvals',
  auditDays: 'Audit log',
} as const

function settingLines(settings: RetentionSettings): string[] {
  const names = Object.keys(NAMES) as (keyof typeof NAMES)[]
  const keptLimits = names.map((name) => {
    const days = settings[name]
    return `${NAMES[name].padEnd(10)} ${days === null ? 'forever' : counted(days, 'day')}`
  })
  return [
    ...keptLimits,
    `Pinned runs are kept${settings.keepOpenIssueRuns ? `, and the newest ${LIMITS.keptRunsOfIssue} of each open issue` : ''}.`,
  ]
}

function printRetention(retention: Retention | WorkspaceRetention, { json }: Options): void {
  if (json) return printJson(retention)
  const { settings, source } = retention
  const from = { environment: 'of the environment', workspace: 'of the workspace', none: 'not set: off' }[source]
  printLine(strong(`Settings ${from}`))
  for (const line of settingLines(settings)) printLine(line)
  if ('progress' in retention && retention.progress) {
    const { passStartedAt, passEndedAt, lastSliceAt, pass, total } = retention.progress
    printLine()
    printLine(`Last pass  ${passStartedAt} to ${passEndedAt ?? 'now (running)'}: ${countsText(pass)}`)
    printLine(`In all     ${countsText(total)}${lastSliceAt === null ? '' : `, last at ${lastSliceAt}`}`)
  }
}

function countsText({ runs, events, payloads, issues, approvals, auditEntries }: RetentionCounts): string {
  const parts = [counted(runs, 'run'), counted(events, 'event'), counted(payloads, 'payload')]
  parts.push(counted(issues, 'issue'), counted(approvals, 'approval'), `${spokenNumber(auditEntries)} audit entries`)
  return parts.join(', ')
}

function previewLines({ settings, runs, payloads, issues, approvals, auditEntries }: RetentionPreview): string[] {
  const ofRuns = (name: string, each: RetentionPreview['runs']) => {
    if (each.runs === 0) return `${name.padEnd(10)} none`
    const about = each.exact ? '' : 'about '
    const span = each.oldest === null ? '' : `, from ${each.oldest} to ${each.newest ?? ''}`
    const size = `about ${spokenBytes(each.bytes)} of payloads`
    return `${name.padEnd(10)} ${about}${counted(each.runs, 'run')}, ${counted(each.events, 'event')}, ${size}${span}`
  }
  const ofRows = (name: string, each: RetentionPreview['issues']) => {
    const least = each.exact ? '' : 'at least '
    return `${name.padEnd(10)} ${each.count === 0 ? 'none' : `${least}${spokenNumber(each.count)}, from ${each.oldest ?? ''}`}`
  }
  return [
    strong('With these settings'),
    ...settingLines(settings),
    '',
    strong('would be removed now'),
    ofRuns('Runs', runs),
    ofRuns('Payloads', payloads),
    ofRows('Issues', issues),
    ofRows('Approvals', approvals),
    ofRows('Audit log', auditEntries),
  ]
}
