import path from 'node:path'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import type { Command } from 'commander'
import { readApiKey } from '../engine/credentials.ts'
import { readUrl } from '../engine/server-address.ts'
import { wholeNumber } from '../engine/options.ts'
import { failed, wrongUsage } from '../engine/stop.ts'

interface RecordOptions {
  tachoUrl?: string
  agent?: string
  session?: string
  runId?: string
  metadataOnly?: true
  guard?: true
  approvalTimeout: number
}

export function addRecord(command: Command): void {
  command
    .usage('[options] -- <command> [args...]')
    .option('--tacho-url <address>', 'address of Tacho (TACHO_URL; default http://localhost:4680)')
    .option('--agent <name>', 'name of the agent in runs and policies; default: the name of the program')
    .option('--session <id>', 'the session of the run, such as a conversation')
    .option('--run-id <id>', 'the id of the run; default: a new one')
    .option('--guard', 'let the policies of the environment decide what answers ask for, before the command gets them')
    .option('--approval-timeout <seconds>', 'longest wait for a person, with --guard', wholeNumber(86_400), 300)
    .option('--metadata-only', 'record no texts: only models, tokens, tools, times and outcomes')
    .addHelpText(
      'after',
      `
Runs the command with the variables that make its clients call models through a proxy of this process, such as
OPENAI_BASE_URL. Requests and answers pass unchanged. Needs TACHO_API_KEY with the scope events:write, and with --guard also
config:read and policies:read. If Tacho cannot be reached, the command runs all the same, and its events wait for the next
recording; with --guard, its tools run only if the last known policies allow them.

Examples:
  tacho record -- node agent.js
  tacho record --agent reviewer -- claude -p 'Review this branch'`,
    )
    .action(record)
}

async function record(words: readonly string[], options: RecordOptions): Promise<void> {
  const [command] = words
  if (command === undefined) throw wrongUsage('Give the command to record after --.')
  const account = { url: readUrl(options.tachoUrl), apiKey: readApiKey() }
  const { agent = path.basename(command), session: sessionId, runId } = options
  // Loaded here, not for the help.
  const { recordProgram } = await import('@tacho/guards/wire/record-program.ts')
  const recorded = await recordProgram({
    account,
    words,
    names: { agentName: agent, agentId: agent, sessionId, runId },
    guard: options.guard && { approvalTimeoutMs: options.approvalTimeout * 1_000 },
    capture: options.metadataOnly ? 'metadata-only' : 'full',
    warn: (message) => void process.stderr.write(`tacho: ${printable(message)}\n`),
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.syscall?.startsWith('spawn') !== true) throw error
    throw failed(`The command ${JSON.stringify(command)} cannot be started (${error.code}).`)
  })
  process.exitCode = recorded.exitCode
  if (recorded.runId !== undefined)
    process.stderr.write(
      `tacho: recorded as run ${printable(recorded.runId)}: tacho runs show ${printable(recorded.runId)}\n`,
    )
}
