/** `tacho`: the list of commands, and how a command ends. */
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { programVersion } from '@tacho/server/program/program.ts'
import { Command, CommanderError } from 'commander'
import { Stop } from './engine/stop.ts'
import { fitHelp, HELP_SETTINGS } from './engine/help.ts'

interface Entry {
  args?: string
  about: string
  hidden?: true
  /** Adds options, subcommands and actions. Shell completion loads commands too. */
  load(): Promise<(command: Command, make: typeof createProgram) => void>
}

/** In the order of the help. To start fast, only the named command is loaded. */
export const COMMANDS: Record<string, Entry> = {
  serve: {
    about: 'run the server until Ctrl-C',
    load: async () => (await import('./web/serve.ts')).addServe,
  },
  login: {
    about: 'keep the address and operator token of a server, so that commands need no variables',
    load: async () => (await import('./people/login.ts')).addLogin,
  },
  logout: {
    about: 'forget a token that login kept',
    load: async () => (await import('./people/login.ts')).addLogout,
  },
  use: {
    args: '[workspace/environment]',
    about: 'choose the environment of commands that name none',
    load: async () => (await import('./people/use.ts')).addUse,
  },
  workspaces: {
    about: 'customers, teams or products; each has environments',
    load: async () => (await import('./tenants/workspaces.ts')).addWorkspaces,
  },
  environments: {
    about: 'parts of a workspace, such as production; API keys belong to one',
    load: async () => (await import('./tenants/environments.ts')).addEnvironments,
  },
  agents: {
    about: 'agents of an environment: their names, and which are listed',
    load: async () => (await import('./runs/agents.ts')).addAgents,
  },
  keys: {
    about: 'API keys, with which agents record and read',
    load: async () => (await import('./tenants/keys.ts')).addKeys,
  },
  tokens: {
    about: 'operator tokens, for scripts and this command',
    load: async () => (await import('./people/tokens.ts')).addTokens,
  },
  operators: {
    about: 'people, their roles, and invitations',
    load: async () => (await import('./people/operators.ts')).addOperators,
  },
  whoami: {
    about: 'show the operator token in use and its roles',
    load: async () => (await import('./people/login.ts')).addWhoami,
  },
  audit: {
    about: 'changes and sign-ins by operators and tokens',
    load: async () => (await import('./people/audit.ts')).addAudit,
  },
  runs: {
    about: 'recorded runs of agents',
    load: async () => (await import('./runs/runs.ts')).addRuns,
  },
  scores: {
    about: 'what people, users and programs say of runs',
    load: async () => (await import('./runs/scores.ts')).addScores,
  },
  approvals: {
    about: 'tool calls that wait for approval',
    load: async () => (await import('./approvals/approvals.ts')).addApprovals,
  },
  issues: {
    about: 'problems of agents, grouped by what they have in common',
    load: async () => (await import('./issues/issues.ts')).addIssues,
  },
  prompts: {
    about: 'versioned prompts, and where they are deployed',
    load: async () => (await import('./policies/prompts.ts')).addPrompts,
  },
  policies: {
    about: 'versioned conditions on tool calls: what agents may do',
    load: async () => (await import('./policies/policies.ts')).addPolicies,
  },
  stop: {
    about: 'block every guarded call of a run, session, agent or environment',
    load: async () => (await import('./policies/stop.ts')).addStop,
  },
  resume: {
    about: 'end a stop',
    load: async () => (await import('./policies/stop.ts')).addResume,
  },
  labels: {
    about: 'what tools are and do, for conditions on the past of a run',
    load: async () => (await import('./policies/labels.ts')).addLabels,
  },
  apply: {
    about: 'make prompts, policies and deployments match a file',
    load: async () => (await import('./policies/apply.ts')).addApply,
  },
  webhooks: {
    about: 'notify other programs, Slack, Teams or PagerDuty, or people by mail',
    load: async () => (await import('./messages/webhooks.ts')).addWebhooks,
  },
  alerts: {
    about: 'notify webhooks of error rates, costs, missing runs and budgets',
    load: async () => (await import('./messages/alerts.ts')).addAlerts,
  },
  search: {
    args: '[words...]',
    about: 'search the payloads and labels of events, or switch search on or off',
    load: async () => (await import('./runs/search.ts')).addSearch,
  },
  erase: {
    about: 'erase a run, session, agent, client or user forever',
    load: async () => (await import('./data/erase.ts')).addErase,
  },
  retention: {
    about: 'how long runs, payloads, issues, approvals and the audit log are kept',
    load: async () => (await import('./data/retention.ts')).addRetention,
  },
  usage: {
    about: 'tokens, cost, outcomes and latencies by time, agent, model and prompt version',
    load: async () => (await import('./runs/usage.ts')).addUsage,
  },
  prices: {
    about: 'what models cost, for estimates',
    load: async () => (await import('./runs/prices.ts')).addPrices,
  },
  record: {
    args: '[command...]',
    about: 'run a program and record its model calls and tools, in any language',
    load: async () => (await import('./record/record-command.ts')).addRecord,
  },
  gateway: {
    about: 'record and guard the model calls of a team behind one address',
    load: async () => (await import('./record/gateway.ts')).addGateway,
  },
  hook: {
    about: 'record and guard Claude Code and Codex',
    load: async () => (await import('./record/hook.ts')).addHook,
  },
  'mcp-guard': {
    args: '[command...]',
    about: 'record and guard the tool calls of an MCP client',
    load: async () => (await import('./record/mcp-guard.ts')).addMcpGuard,
  },
  'mcp-server': {
    about: 'let a model read runs, issues and usage, by MCP',
    load: async () => (await import('./web/mcp-server.ts')).addMcpServer,
  },
  import: {
    args: '<file>',
    about: 'record chat transcripts as runs; - reads standard input',
    load: async () => (await import('./record/import.ts')).addImport,
  },
  tape: {
    args: '[run]',
    about: 'write a run into a file that replays it, or compare two such files',
    load: async () => (await import('./record/tape-files.ts')).addTape,
  },
  replay: {
    args: '<tape> [command...]',
    about: 'run an agent again, with its models and guarded tools answered from a tape',
    load: async () => (await import('./record/replay.ts')).addReplay,
  },
  test: {
    args: '[place] [command...]',
    about: 'replay tapes and check outcome, calls, decisions and budgets',
    load: async () => (await import('./record/test-tapes.ts')).addTest,
  },
  dataset: {
    about: 'named sets of tapes with versions, for tests and experiments',
    load: async () => (await import('./record/dataset.ts')).addDataset,
  },
  experiment: {
    about: 'replay many runs with another prompt, model or policies, and compare',
    load: async () => (await import('./record/experiment.ts')).addExperiment,
  },
  demo: {
    about: 'record realistic sample runs, approvals and issues',
    load: async () => (await import('./record/demo.ts')).addDemo,
  },
  backup: {
    args: '<file>',
    about: 'write a consistent snapshot of the store into a new file',
    load: async () => (await import('./data/backup.ts')).addBackup,
  },
  restore: {
    args: '<file>',
    about: 'restore a backup into a data directory',
    load: async () => (await import('./data/restore.ts')).addRestore,
  },
  export: {
    about: 'write an environment, or some of its runs, as JSON Lines',
    load: async () => (await import('./data/export.ts')).addExport,
  },
  'restore-export': {
    args: '<file>',
    about: 'write an export into an empty environment; - reads standard input',
    load: async () => (await import('./data/restore-export.ts')).addRestoreExport,
  },
  recover: {
    about: 'replace a lost operator token or API key',
    load: async () => (await import('./people/recover.ts')).addRecover,
  },
  migrate: {
    about: 'migrate a database to the schema of this version before its servers start',
    load: async () => (await import('./data/migrate.ts')).addMigrate,
  },
  copy: {
    about: 'copy an installation into an empty store',
    load: async () => (await import('./data/copy.ts')).addCopy,
  },
  doctor: {
    about: 'check the installation, or trace one event',
    load: async () => (await import('./web/doctor.ts')).addDoctor,
  },
  version: {
    about: 'print the version of this program, with the commit that it was built from',
    load: async () => (await import('./web/version.ts')).addVersion,
  },
  api: {
    args: '<route>',
    about: 'call any endpoint of the operator API',
    load: async () => (await import('./web/api.ts')).addApi,
  },
  completion: {
    args: '<shell>',
    about: 'print a script that completes commands: bash, zsh or fish',
    load: async () => (await import('./web/completion.ts')).addCompletion,
  },
  complete: {
    args: '[words...]',
    about: 'what the last word of a command line can become',
    hidden: true,
    load: async () => (await import('./web/completion.ts')).addComplete,
  },
}

const ENVIRONMENT_HELP = `
Variables:
  TACHO_URL             address of the server; http://localhost:4680 when not set
  TACHO_OPERATOR_TOKEN  operator token; not for serve and the commands with TACHO_API_KEY. Instead: tacho login, or --token-file
  TACHO_ENVIRONMENT     environment of commands that name none. Instead: tacho use
  TACHO_PROFILE         one of the profiles of tacho login
  TACHO_API_KEY         API key, for import, demo, record, mcp-guard and hook
Never pass a key or token as an argument: every user of the machine can see arguments.

Exit codes: 0 success; 1 failed; 2 wrong usage; 3 differences found (apply, hook); 130 interrupted. --json prints one JSON document on
stdout; errors are on stderr.`

/** A program in which the command that `args` names is complete; other commands have only a name and a description. */
export async function createProgram(args: readonly string[]): Promise<Command> {
  const program = new Command('tacho')
    .description('The flight recorder and firewall for AI agents')
    .version(programVersion())
    // Without this, `tacho prompts deploy greeting --version 2` would print the program's version and deploy nothing.
    .enablePositionalOptions()
    .exitOverride()
    .configureHelp(HELP_SETTINGS)
    .configureOutput({
      writeOut: (text) => void process.stdout.write(fitHelp(text, process.stdout)),
      writeErr: (text) => void process.stderr.write(fitHelp(text, process.stderr)),
      outputError: (text, write) => write(saidError(text)),
    })
    .addHelpText('after', ENVIRONMENT_HELP)
  const named = commandIn(args)
  for (const [name, { args: usage = '', about, hidden = false, load }] of Object.entries(COMMANDS)) {
    const command = program.command(`${name} ${usage}`, { hidden }).description(about)
    if (name === named) (await load())(command, createProgram)
  }
  return program
}

/**
 * Formats an error: it repeats words of the command line unchanged, and has the hint of a similar word on its own line.
 */
function saidError(text: string): string {
  const [, error = '', hint = ''] = /^(?:error: )?(.*?)(\n\(Did you mean [^\n]*\?\))?\n*$/s.exec(text) ?? []
  return `tacho: ${printable(error)}${hint}\n`
}

/** The command in `args`: `tacho keys --help` and `tacho help keys` name the same one. */
function commandIn(args: readonly string[]): string | undefined {
  return args.find((arg) => arg !== 'help' && !arg.startsWith('-'))
}

/**
 * Whether the command exists. Otherwise commander would answer `tacho unknown --help` with its own help and success.
 */
function isKnown(args: readonly string[]): boolean {
  const named = commandIn(args)
  return named === undefined || Object.hasOwn(COMMANDS, named)
}

function isNoHelp(arg: string): boolean {
  return !['help', '--help', '-h'].includes(arg)
}

/** Exits when the reader of the output stops early: `tacho runs list --all | head`. */
function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  }
}

async function suggestOption(error: string, program: Command, args: readonly string[]): Promise<void> {
  const { nearOption } = await import('./engine/help.ts')
  const near = nearOption(error, program, args)
  if (near !== null) process.stderr.write(`(Did you mean ${near}?)\n`)
}

/** Runs a command line. Resolves with its exit code. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  // Not for the server, which keeps running without a reader of its output.
  if (args[0] !== 'serve' || !args.every(isNoHelp)) endWithReader()
  let program: Command | undefined
  try {
    program = await createProgram(args)
    await program.parseAsync(isKnown(args) ? args : args.filter(isNoHelp), { from: 'user' })
    // Loaded here, so that `tacho --help` stays quick.
    return Number(process.exitCode ?? 0)
  } catch (error) {
    // Commander has already printed the error or the help.
    if (error instanceof CommanderError) {
      if (program && error.code === 'commander.unknownOption') await suggestOption(error.message, program, args)
      return error.exitCode === 0 ? 0 : 2
    }
    const [code, sentence] =
      error instanceof Stop ? [error.exitCode, error.message] : [1, `Unexpected error: ${String(error)}`]
    // The sentence may contain names and texts from clients.
    process.stderr.write(`tacho: ${sentence.split('\n').map(printable).join('\n')}\n`)
    return code
  }
}

if (import.meta.main) process.exitCode = await runCommandLine(process.argv.slice(2))
