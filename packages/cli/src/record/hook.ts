import { accountFile, readAccount, writeAccount } from '@tacho/guards/hook/account.ts'
import { AGENT_NAMES, type AgentName } from '@tacho/guards/hook/agents.ts'
import { commandFor } from '@tacho/guards/hook/command.ts'
import { isManagedAgent, managedAccountFile } from '@tacho/guards/hook/managed.ts'
import { isModuleAgent, isOurModule, moduleText } from '@tacho/guards/hook/modules.ts'
import { openJudgedCalls } from '@tacho/guards/hook/session/judged-calls.ts'
import { stateRoot, type Account } from '@tacho/guards/state.ts'
import {
  ownHooks,
  readSettings,
  settingsFile,
  withHooks,
  withoutHooks,
  writeSettings,
  type InstallOptions,
} from '@tacho/guards/hook/settings.ts'
import { Argument, Option, type Command } from 'commander'
import { check, PROGRAM } from './hook-check.ts'
import { status } from './hook-status.ts'
import {
  isConfirmed,
  installManaged,
  uninstallManaged,
  deleteOwnFile,
  writeOwnFile,
  type OwnFile,
} from './hook-files.ts'
import { readApiKey } from '../engine/credentials.ts'
import { readUrl } from '../engine/server-address.ts'
import { wholeNumber } from '../engine/options.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { printable, printLine } from '../engine/output.ts'

interface Options {
  project?: true
  managed?: true
  yes?: true
}

interface InstallCommandOptions extends Options {
  url?: string
  approvalTimeout: number
  unconfigured: 'deny' | 'ask'
}

export function addHook(hook: Command): void {
  hook.addHelpText(
    'after',
    `
The agent itself runs "tacho hook <agent>" with a record on standard input. Each session becomes a run, and
the policies of the environment decide about its tools.

Examples:
  TACHO_API_KEY=tacho_… tacho hook install claude-code
  tacho hook install codex --project --yes
  sudo -E tacho hook install claude-code --managed
  tacho hook status
  tacho hook uninstall claude-code`,
  )
  change(hook.command('install').description('add the hooks to the settings of an agent, and keep address and key'))
    .option('--url <address>', 'address of Tacho (TACHO_URL; default http://localhost:4680)')
    .option('--approval-timeout <seconds>', 'longest wait for a person', wholeNumber(86_400), 300)
    .addOption(
      new Option('--unconfigured <choice>', 'what happens to tools while no policies were ever loaded')
        .choices(['deny', 'ask'])
        .default('deny'),
    )
    .action(install)
  change(hook.command('uninstall').description('remove exactly these hooks from the settings')).action(uninstall)
  hook
    .command('check')
    .description('run the installed hooks with a tool that does nothing, and say what holds')
    .addArgument(new Argument('[agent]').choices(AGENT_NAMES))
    .action(check)
  hook
    .command('status')
    .description(
      'what guards the agents in this folder: environment, policies, the last decision, what waits for delivery',
    )
    .action(status)
}

function change(command: Command): Command {
  return command
    .addArgument(new Argument('<agent>').choices(AGENT_NAMES))
    .option('--project', 'the settings of the project in this directory, instead of your own')
    .addOption(
      new Option('--managed', 'the settings of the whole machine, which no project can switch off').conflicts(
        'project',
      ),
    )
    .option('-y, --yes', 'write without asking')
}

async function install(agent: AgentName, options: InstallCommandOptions): Promise<void> {
  const account = accountOf(options)
  const flags = [
    ...(options.project ? ['--project'] : []),
    ...(options.approvalTimeout === 300 ? [] : ['--approval-timeout', String(options.approvalTimeout)]),
    ...(options.unconfigured === 'deny' ? [] : ['--unconfigured', options.unconfigured]),
  ]
  if (options.managed) {
    return installManaged({ agent: managedAgent(agent), account, program: PROGRAM, flags }, options)
  }
  const parts = { agent, program: PROGRAM, flags, stateFolder: stateRoot() }
  const target = targetOf(agent, options)
  const commandOf = (event: string): string => commandFor(parts, event)
  const { approvalTimeout, yes } = options
  const first = (): void => writeAccount(account)
  if (isModuleAgent(agent)) {
    const text = moduleText(agent, commandOf, approvalTimeout)
    if (!(await writeOwnFile(moduleFile(target), text, { yes, first }))) return
  } else {
    const { file, settings } = settingsOf(target)
    const next = withHooks(settings, agent, commandOf, approvalTimeout)
    if (!(await write({ file, agent, before: settings, after: next }, options))) return
    first()
  }
  // Note the time: earlier sessions have no decisions.
  openJudgedCalls(stateRoot()).since(Date.now())
  printLine(`Address and key are in ${accountFile()}, which only you can read.`)
  if (agent === 'codex') printLine('Codex runs new hooks only after you trust them: start codex and enter /hooks.')
}

/**
 * The key from the environment, else from an earlier installation: a key is printed only once, and all agents share it.
 */
function accountOf({ url, managed }: InstallCommandOptions): Account {
  const { TACHO_API_KEY, TACHO_URL } = process.env
  const file = managed ? managedAccountFile() : accountFile()
  const savedAccount = TACHO_API_KEY === undefined ? readAccount(file, {}) : null
  if (savedAccount === null) return { url: readUrl(url), apiKey: readApiKey() }
  const wanted = url === undefined && TACHO_URL === undefined ? savedAccount.url : readUrl(url)
  if (wanted === savedAccount.url) return savedAccount
  throw wrongUsage(`The key in ${file} is for ${savedAccount.url}, not for ${wanted}: set TACHO_API_KEY.`)
}

async function uninstall(agent: AgentName, options: Options): Promise<void> {
  if (options.managed) return uninstallManaged(managedAgent(agent), options)
  if (isModuleAgent(agent)) return deleteOwnFile(moduleFile(targetOf(agent, options)), options.yes)
  const { file, settings } = settingsOf(targetOf(agent, options))
  await write({ file, agent, before: settings, after: withoutHooks(settings, agent) }, options)
}

function moduleFile(target: InstallOptions): OwnFile {
  return { file: settingsFile(target), mode: 0o600, isOurs: isOurModule }
}

function managedAgent(agent: AgentName): AgentName {
  if (isManagedAgent(agent)) return agent
  throw failed(`Tacho writes no managed settings for ${agent}; nothing was changed.`)
}

function targetOf(agent: AgentName, { project }: Options): InstallOptions {
  return { agent, project: project === true }
}

function settingsOf(target: InstallOptions): { file: string; settings: Record<string, unknown> } {
  const file = settingsFile(target)
  try {
    return { file, settings: readSettings(file) }
  } catch (error) {
    throw failed(`${(error as Error).message}; nothing was changed.`)
  }
}

interface Change {
  file: string
  agent: AgentName
  before: Record<string, unknown>
  after: Record<string, unknown>
}

/** Shows the change and asks. True if the settings are now as wanted. */
async function write({ file, agent, before, after }: Change, { yes }: Options): Promise<boolean> {
  if (JSON.stringify(before) === JSON.stringify(after)) {
    printLine(`${file} needs no change.`)
    return true
  }
  printLine(`${file}:`)
  for (const line of ownHooks(before, agent, after)) printLine(`- ${printable(line)}`)
  for (const line of ownHooks(after, agent, before)) printLine(`+ ${printable(line)}`)
  if (!(await isConfirmed(yes))) return false
  writeSettings(file, after)
  printLine(`Written to ${file}.`)
  return true
}
