/**
 * Delivers while the process ends. Its own promises no longer run, so another Node process sends, and this one waits. It
 * waits because a container ends with its first process. The key and the events go through a pipe: nothing is in a
 * command line, the environment or a file.
 */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import process from 'node:process'
import { verdictOf, type Verdict } from '../answer.ts'
import { bodyOf } from '../batch.ts'
import type { QueuedEvent } from '../queue.ts'

/** Sends each body and writes one line for each answer. Ends with the first failure. */
const PROGRAM = `
let text = ''
process.stdin.setEncoding('utf8').on('data', (part) => (text += part)).on('end', async () => {
  const { url, key, timeoutMs, bodies } = JSON.parse(text)
  const headers = { 'content-type': 'application/json', 'x-api-key': key }
  const signal = AbortSignal.timeout(timeoutMs)
  for (const body of bodies) {
    const reply = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    const answer = { status: reply.status, type: reply.headers.get('content-type'), text: (await reply.text()).slice(0, 1e6) }
    process.stdout.write(JSON.stringify(answer) + '\\n')
  }
}).on('error', () => {})
process.on('uncaughtException', () => process.exit(1))
`

/** Another program, such as one built of Node and the host's code, would begin the host again. */
const NODE = /^node(js)?[\d.]*(\.exe)?$/i
/** Flags of the host without which the other process may not reach the service. The others could run the host's code. */
const NETWORK_FLAGS: ReadonlySet<string> = new Set([
  '--use-system-ca',
  '--use-openssl-ca',
  '--use-bundled-ca',
  '--use-env-proxy',
])
const OUTPUT_BYTES_MAX = 67_108_864

export interface Service {
  readonly baseUrl: string
  readonly apiKey: string
}

/** A verdict for each batch that was answered in time. Blocks at most `timeoutMs`. Never throws. */
export function deliverNow(
  { baseUrl, apiKey }: Service,
  batches: readonly (readonly QueuedEvent[])[],
  timeoutMs: number,
): Verdict[] {
  try {
    const { versions, execPath, execArgv, env } = process
    if (versions['bun'] || versions['deno'] || !NODE.test(path.basename(execPath))) return []
    const { NODE_OPTIONS = '', ...others } = env
    const flags = [...execArgv, ...NODE_OPTIONS.split(' ')].filter((flag) => NETWORK_FLAGS.has(flag))
    const bodies = batches.map(bodyOf)
    const { stdout } = spawnSync(execPath, [...flags, '--eval', PROGRAM], {
      input: JSON.stringify({ url: `${baseUrl}/openapi/v1/events/batch`, key: apiKey, timeoutMs, bodies }),
      env: others,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: OUTPUT_BYTES_MAX,
      windowsHide: true,
    })
    const lines = stdout.split('\n').slice(0, -1)
    return lines.map((line, at) => verdict(line, batches[at] ?? []))
  } catch {
    return []
  }
}

function verdict(line: string, batch: readonly QueuedEvent[]): Verdict {
  const { status, type, text } = JSON.parse(line) as { status: number; type: string | null; text: string }
  const header = (name: string) => (name === 'content-type' ? type : null)
  const reply = { kind: 'reply', ok: status >= 200 && status < 300, status, header, json: parsed(text) } as const
  return verdictOf(
    reply,
    batch.map(({ id }) => id),
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
