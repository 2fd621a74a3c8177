/** `tacho`: the list of commands, and how every one of them ends. */
import { Command, CommanderError } from 'commander'
import { readFileSync } from 'node:fs'
import { Stop } from './stop.ts'

type Add = (program: Command) => void

/** In the order of the help. Only the named command is loaded, to start quickly. */
const COMMANDS: Record<string, () => Promise<Add>> = {
  serve: async () => (await import('./commands/serve.ts')).addServe,
  workspaces: async () => (await import('./commands/workspaces.ts')).addWorkspaces,
  environments: async () => (await import('./commands/environments.ts')).addEnvironments,
  keys: async () => (await import('./commands/keys.ts')).addKeys,
  tokens: async () => (await import('./commands/tokens.ts')).addTokens,
  operators: async () => (await import('./commands/operators.ts')).addOperators,
  whoami: async () => (await import('./commands/whoami.ts')).addWhoami,
  audit: async () => (await import('./commands/audit.ts')).addAudit,
  runs: async () => (await import('./commands/runs.ts')).addRuns,
  approvals: async () => (await import('./commands/approvals.ts')).addApprovals,
  issues: async () => (await import('./commands/issues.ts')).addIssues,
  prompts: async () => (await import('./commands/prompts.ts')).addPrompts,
  policies: async () => (await import('./commands/policies.ts')).addPolicies,
  apply: async () => (await import('./commands/apply.ts')).addApply,
  webhooks: async () => (await import('./commands/webhooks.ts')).addWebhooks,
  usage: async () => (await import('./commands/usage.ts')).addUsage,
  import: async () => (await import('./commands/import.ts')).addImport,
  demo: async () => (await import('./commands/demo.ts')).addDemo,
  backup: async () => (await import('./commands/backup.ts')).addBackup,
  restore: async () => (await import('./commands/restore.ts')).addRestore,
  recover: async () => (await import('./commands/recover.ts')).addRecover,
  migrate: async () => (await import('./commands/migrate.ts')).addMigrate,
  copy: async () => (await import('./commands/copy.ts')).addCopy,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctor,
}

const ENVIRONMENT_HELP = `
Variables:
  TACHO_URL             address of the server; http://localhost:4680 when not set
  TACHO_OPERATOR_TOKEN  operator token, for every command but serve, import and demo (or --token-file)
  TACHO_API_KEY         API key, for import and demo
Never pass a key or token as an argument: every user of the machine can see arguments.

Exit codes: 0 success; 1 failed; 2 wrong usage; 3 differences found (apply). --json prints one JSON document on stdout; errors are on stderr.`

async function createProgram(named: string | undefined): Promise<Command> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const program = new Command('tacho')
    .description('The flight recorder for AI agents')
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'tacho: ')) })
    .addHelpText('after', ENVIRONMENT_HELP)
  const known = named !== undefined && Object.hasOwn(COMMANDS, named) ? COMMANDS[named] : undefined
  for (const load of known ? [known] : Object.values(COMMANDS)) (await load())(program)
  return program
}

/** The reader of the output may stop early: `tacho runs list --all | head`. */
function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  }
}

/** Runs a command line and answers with its exit code. */
async function run(args: readonly string[]): Promise<number> {
  // The server keeps running when its output has no reader.
  if (args[0] !== 'serve') endWithReader()
  try {
    const program = await createProgram(args[0])
    await program.parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    // Commander has already printed the error or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const [code, sentence] =
      error instanceof Stop ? [error.exitCode, error.message] : [1, `Unexpected error: ${String(error)}`]
    process.stderr.write(`tacho: ${sentence}\n`)
    return code
  }
}

process.exitCode = await run(process.argv.slice(2))
