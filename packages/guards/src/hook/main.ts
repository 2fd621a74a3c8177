/**
 * The program of a hook: `tacho hook <agent>`. Loads as little as it can, because the agent
 * waits for it. A hook before a tool that fails refuses the tool.
 */
import { read, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { accountFile, readAccount } from './account.ts'
import { NO_OBJECTION, notConfigured } from './answer.ts'
import { AGENT_NAMES, isAgentName } from './agents.ts'
import { allowPlainCall } from './session/plain-calls.ts'
import { readRecord } from './record.ts'

// `tacho record` continues to record the agent, because a hook sees only its tools, not its model.
delete process.env['TACHO_RECORDED_BY']

const RECORD_BYTES_MAX = 20 * 1_048_576
/** Longest wait for the record. The agent writes it at once. */
const RECORD_MS = 10_000
const PART_BYTES = 65_536
const AGAIN_MS = 5
const NO_KEY = 'Tacho has no API key; run "tacho hook install", or set TACHO_API_KEY'
/** All agents treat this exit code as a refusal, with standard error as the reason. */
const REFUSED = 2

/** Reads standard input to its end. Node's stream for standard input would load sockets and terminals. */
async function readInput(): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => {
    writeSync(2, failureOf(`the record did not end within ${RECORD_MS / 1_000} seconds`))
    endNow(REFUSED)
  }, RECORD_MS)
  try {
    for (;;) {
      const readBuffer = Buffer.allocUnsafe(PART_BYTES)
      const length = await readPart(readBuffer)
      if (length === 0) return Buffer.concat(parts).toString()
      bytes += length
      if (bytes > RECORD_BYTES_MAX) throw new Error(`the record has more than ${RECORD_BYTES_MAX} bytes`)
      parts.push(readBuffer.subarray(0, length))
    }
  } finally {
    clearTimeout(timer)
  }
}

function readPart(readBuffer: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    read(0, readBuffer, 0, readBuffer.length, null, (error, length) => {
      if (!error) resolve(length)
      // The process at the other end made the pipe non-blocking.
      else if (error.code === 'EAGAIN') setTimeout(() => void readPart(readBuffer).then(resolve, reject), AGAIN_MS)
      else reject(error)
    })
  })
}

/** Ends the process. The thread that waits for standard input would keep it running. */
function endNow(code: number): void {
  process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {})
  process.kill(process.pid, 'SIGKILL')
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'approval-timeout': { type: 'string', default: '300' },
      unconfigured: { type: 'string', default: 'deny' },
      account: { type: 'string' },
      step: { type: 'string' },
      project: { type: 'boolean', default: false },
    },
  })
  const [name, notification] = positionals
  if (!isAgentName(name)) throw new Error(`the agent must be one of ${AGENT_NAMES.join(', ')}`)
  const agent = name
  const seconds = Number(values['approval-timeout'])
  if (!(seconds >= 1 && seconds <= 86_400)) throw new Error('--approval-timeout must be from 1 to 86400 seconds')
  const unconfigured = values.unconfigured
  if (unconfigured !== 'deny' && unconfigured !== 'ask') throw new Error('--unconfigured must be deny or ask')

  // Codex gives the record of `notify` as an argument.
  const text = notification ?? (await readInput())
  const record = readRecord(agent, text, values.step)
  if (!record) throw new Error('standard input is not a hook record that Tacho understands')
  isBeforeTool = record.event === 'PreToolUse'
  const account = readAccount(values.account ?? accountFile())
  if (!account) {
    if (!isBeforeTool) throw new Error(NO_KEY)
    process.stdout.write(`${notConfigured(`The tool was not run: ${NO_KEY}.`, agent, unconfigured)}\n`)
    return
  }
  if (isBeforeTool && allowPlainCall(account, agent, record)) {
    // Write directly: the stream for standard output would load as many modules.
    writeSync(1, `${NO_OBJECTION}\n`)
    return
  }
  const { runHook } = await import('./run-hook.ts')
  const answer = await runHook(account, record, {
    agent,
    approvalTimeoutMs: seconds * 1_000,
    unconfigured,
    isProject: values.project,
    isManaged: values.account !== undefined,
  })
  // The installed command refuses a tool if there is no answer: see command.ts.
  const whole = answer === '' && isBeforeTool ? NO_OBJECTION : answer
  if (whole !== '') process.stdout.write(`${whole}\n`)
}

function failureOf(why: string): string {
  return `tacho: the hook failed: ${why}.${isBeforeTool ? ' The tool was not run.' : ''}\n`
}

/** Until the record is read, assume that the step is before a tool. */
let isBeforeTool = true
// The exit code if `main` never finishes. The build is CommonJS, which has no top-level await.
process.exitCode = REFUSED
main().then(
  () => (process.exitCode = 0),
  (error: unknown) => {
    writeSync(2, failureOf(error instanceof Error ? error.message : 'unknown error'))
    process.exitCode = isBeforeTool ? REFUSED : 1
  },
)
