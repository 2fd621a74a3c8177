/** `tacho`: the list of commands, and how every one of them ends. */
import { Command, CommanderError } from 'commander'
import { readFileSync } from 'node:fs'
import { addApprovals } from './commands/approvals.ts'
import { addApply } from './commands/apply.ts'
import { addAudit } from './commands/audit.ts'
import { addBackup } from './commands/backup.ts'
import { addCopy } from './commands/copy.ts'
import { addDemo } from './commands/demo.ts'
import { addDoctor } from './commands/doctor.ts'
import { addEnvironments } from './commands/environments.ts'
import { addImport } from './commands/import.ts'
import { addIssues } from './commands/issues.ts'
import { addKeys } from './commands/keys.ts'
import { addPolicies } from './commands/policies.ts'
import { addPrompts } from './commands/prompts.ts'
import { addOperators } from './commands/operators.ts'
import { addMigrate } from './commands/migrate.ts'
import { addRecover } from './commands/recover.ts'
import { addRestore } from './commands/restore.ts'
import { addRuns } from './commands/runs.ts'
import { addServe } from './commands/serve.ts'
import { addTokens } from './commands/tokens.ts'
import { addUsage } from './commands/usage.ts'
import { addWebhooks } from './commands/webhooks.ts'
import { addWhoami } from './commands/whoami.ts'
import { addWorkspaces } from './commands/workspaces.ts'
import { Stop } from './stop.ts'

const ENVIRONMENT_HELP = `
Variables:
  TACHO_URL             address of the server; http://localhost:4680 when not set
  TACHO_OPERATOR_TOKEN  operator token, for every command but serve, import and demo (or --token-file)
  TACHO_API_KEY         API key, for import and demo
Keys and tokens are never taken as arguments, because every user of a machine can see those.

Exit codes: 0 done; 1 failed; 2 wrong usage. --json prints one JSON document on stdout; errors are on stderr.`

function createProgram(): Command {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const program = new Command('tacho')
    .description('The flight recorder for AI agents')
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'tacho: ')) })
    .addHelpText('after', ENVIRONMENT_HELP)
  addServe(program)
  addWorkspaces(program)
  addEnvironments(program)
  addKeys(program)
  addTokens(program)
  addOperators(program)
  addWhoami(program)
  addAudit(program)
  addRuns(program)
  addApprovals(program)
  addIssues(program)
  addPrompts(program)
  addPolicies(program)
  addApply(program)
  addWebhooks(program)
  addUsage(program)
  addImport(program)
  addDemo(program)
  addBackup(program)
  addRestore(program)
  addRecover(program)
  addMigrate(program)
  addCopy(program)
  addDoctor(program)
  return program
}

/** Whoever reads the output may have enough of it: `tacho runs list --all | head`. */
function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  }
}

/** Runs a command line and answers with its exit code. */
async function run(args: readonly string[]): Promise<number> {
  // The server goes on without readers of its output.
  if (args[0] !== 'serve') endWithReader()
  try {
    await createProgram().parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    // Commander has told what is wrong with the command line, or printed the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const [code, sentence] =
      error instanceof Stop ? [error.exitCode, error.message] : [1, `Something unexpected happened: ${String(error)}`]
    process.stderr.write(`tacho: ${sentence}\n`)
    return code
  }
}

process.exitCode = await run(process.argv.slice(2))
