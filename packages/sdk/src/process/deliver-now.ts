/**
 * Delivers while the process ends. Its own promises no longer run, so another Node process sends, and this one waits. It
 * waits because a container ends with its first process. The key and the events go through a pipe: nothing is in a
 * command line, the environment or a file.
 */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import process from 'node:process'
import { verdictOf } from '../delivery/answer.ts'
import { piecesOf } from '../delivery/batch.ts'
import { readSafely } from '../recording/json.ts'
import type { QueuedItem } from '../delivery/queue.ts'
import type { Sender } from '../delivery/sender.ts'

/** Program of the child process. Prints one line for each answer, and ends with the first failure. */
const PROGRAM = `
let text = ''
process.stdin.setEncoding('utf8').on('data', (piece) => (text += piece)).on('end', async () => {
  const { url, key, timeoutMs, requests } = JSON.parse(text)
  const headers = { 'content-type': 'application/json', 'x-api-key': key }
  const signal = AbortSignal.timeout(timeoutMs)
  for (const [path, body] of requests) {
    const reply = await fetch(url + path, { method: 'POST', headers, body, redirect: 'manual', signal })
    const answer = { status: reply.status, type: reply.headers.get('content-type'), text: (await reply.text()).slice(0, 1e6) }
    process.stdout.write(JSON.stringify(answer) + '\\n')
  }
}).on('error', () => {})
process.on('uncaughtException', () => process.exit(1))
`

/**
 * Only plain Node runs the program. Another executable, such as one built of Node and the host's code, would start the host
 * again.
 */
const NODE = /^node(js)?[\d.]*(\.exe)?$/i
/** The host's flags that the child process may need to reach the service. Other flags could run the host's code. */
const NETWORK_FLAG = /^--use-((system|openssl|bundled)-ca|env-proxy)$/
/** Maximum bytes of events, in full batches. */
const INPUT_BYTES = 33_554_432
const OUTPUT_BYTES_MAX = 67_108_864

export interface Service {
  readonly baseUrl: string
  readonly apiKey: string
  readonly timeoutMs: number
}

interface Queued {
  readonly from: Sender
  readonly path: string
  readonly verdict: typeof verdictOf
}

/** For a sender: a queue whose items are delivered together with its events, one for each request. */
export const besideOf = new WeakMap<Sender, Queued>()

type Post = readonly [path: string, body: string]

interface Permission {
  permission?: { has(scope: 'child'): boolean }
}

/** Explains why nothing could be sent at the end. */
export const hint = (): string =>
  (process as Permission).permission?.has('child') === false
    ? ' With --permission, a process that ends at once delivers only with --allow-child-process.'
    : ''

/** Blocks at most `timeoutMs`. Never throws. */
export function deliverNow(sender: Sender, service: Service): void {
  const beside = besideOf.get(sender)
  const queues: Queued[] = [{ from: sender, path: '/events/batch', verdict: verdictOf }, ...(beside ? [beside] : [])]
  const taken = queues.flatMap((queue) => [...batchesOf(queue.from)].map((batch) => ({ ...queue, batch })))
  const requests = taken.map(({ from, path, batch }): Post => [
    path,
    from === sender ? piecesOf(batch, service.baseUrl).join('') : String(batch[0]?.json),
  ])
  const replies = post(service, requests)
  for (const [at, { from, batch, verdict }] of taken.entries()) {
    const reply = replies[at]
    const ids = batch.map(({ id }) => id)
    from.concludeAtEnd(batch, reply && verdict(reply, ids))
  }
}

function* batchesOf(sender: Sender): Generator<QueuedItem[]> {
  for (let bytes = 0; bytes < INPUT_BYTES;) {
    const batch = sender.takeAtEnd()
    if (batch.length === 0) return
    for (const item of batch) bytes += item.bytes
    yield batch
  }
}

function post({ baseUrl, apiKey, timeoutMs }: Service, requests: readonly Post[]) {
  try {
    const { versions, execPath, execArgv, env } = process
    if (versions['bun'] || versions['deno'] || !NODE.test(path.basename(execPath))) return []
    if (timeoutMs <= 0 || requests.length === 0) return []
    const { NODE_OPTIONS = '', ...others } = env
    const flags = [...execArgv, ...NODE_OPTIONS.split(' ')].filter((flag) => NETWORK_FLAG.test(flag))
    const { stdout } = spawnSync(execPath, [...flags, '--eval', PROGRAM], {
      input: JSON.stringify({ url: `${baseUrl}/openapi/v1`, key: apiKey, timeoutMs, requests }),
      env: others,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: OUTPUT_BYTES_MAX,
      windowsHide: true,
    })
    return stdout.split('\n').slice(0, -1).map(replyOf)
  } catch {
    return []
  }
}

function replyOf(line: string) {
  const { status, type, text } = JSON.parse(line) as { status: number; type: string | null; text: string }
  const header = (name: string) => (name === 'content-type' ? type : null)
  return {
    kind: 'reply',
    ok: status >= 200 && status < 300,
    status,
    header,
    json: readSafely(() => JSON.parse(text) as unknown, undefined),
  } as const
}
