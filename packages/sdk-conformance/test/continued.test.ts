/**
 * A process is killed while it waits for a person. The person approves on the command line. Then two processes continue the
 * call at once, and one more later, in the same language or the other one. The tool must run once.
 */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { after, before, test } from 'node:test'
import { API_KEY, startServer, type TestServer } from '../../cli/test/tacho.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { interpreter, PYTHON_SDK, withoutPython } from './python.ts'

type Handle = { approvals?: { approvalId: string; args: unknown }[]; used?: { toolCalls: number } }
type Answer = { result: string; handle: Handle }

const LANGUAGES = {
  typescript: [process.execPath, fileURLToPath(new URL('continued-child.ts', import.meta.url))],
  python: [interpreter, path.join(PYTHON_SDK, 'tests', 'continued_child.py')],
} as const
type Language = keyof typeof LANGUAGES

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.stop())

function start(language: Language, ...args: string[]) {
  const [program, file] = LANGUAGES[language]
  const env = { ...process.env, PYTHONPATH: path.join(PYTHON_SDK, 'src') }
  const child: ChildProcess = spawn(program, [file, ...args], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const next = async <Line>() => JSON.parse(String((await lines.next()).value)) as Line
  return { child, next, closed: once(child, 'close') }
}

async function asked(runId: string): Promise<string> {
  const { id } = await eventually(async () => {
    const { items } = await server.json<{ items: { id: string; runId: string }[] }>('approvals', 'list')
    return items.find((one) => one.runId === runId)
  }, 'an approval request')
  return id
}

/** Processes start slowly on a busy machine. */
const timeout = 600_000

const PAIRS: readonly (readonly [Language, Language, Language])[] = [
  ['typescript', 'typescript', 'typescript'],
  ['python', 'python', 'python'],
  ['typescript', 'typescript', 'python'],
  ['python', 'typescript', 'python'],
]

for (const [first, second, third] of PAIRS) {
  const isPython = [first, second, third].includes('python')
  const skip = isPython ? withoutPython : false
  test(`killed in ${first}, then ${second} and ${third} at once: the tool runs once`, { skip, timeout }, async () => {
    const file = path.join(server.directory, `${first}-${second}-${third}`)
    const at = [server.url, API_KEY, file]
    const waiting = start(first, 'wait', ...at)
    const handle = await waiting.next<Handle & { runId: string }>()
    const id = await asked(handle.runId)
    waiting.child.kill('SIGKILL')
    await waiting.closed
    await server.text('approvals', 'approve', id)
    // The handle is older than the call, so both processes make the call again.
    const both = [
      start(second, 'again', ...at, JSON.stringify(handle)),
      start(third, 'again', ...at, JSON.stringify(handle)),
    ]
    for (const { next } of both) assert.equal(await next(), 'ready')
    for (const { child } of both) child.stdin?.write('\n')
    const answers = await Promise.all(both.map(({ next }) => next<Answer>()))
    await Promise.all(both.map(({ closed }) => closed))
    assert.deepEqual(answers.map(({ result }) => result).sort(), ['approval_used', 'ran'])
    assert.equal(readFileSync(file, 'utf8'), '1007 25\n')
    const winner = answers.find(({ result }) => result === 'ran')
    assert.equal(winner?.handle.used?.toolCalls, 1)
  })
}

for (const [first, second] of [
  ['typescript', 'python'],
  ['python', 'typescript'],
] as const) {
  test(`a pending call of ${first} is continued in ${second}, once`, { skip: withoutPython, timeout }, async () => {
    const file = path.join(server.directory, `${first}-${second}-continued`)
    const at = [server.url, API_KEY, file]
    const ended = start(first, 'pend', ...at)
    const { approvalId, handle } = await ended.next<{ approvalId: string; handle: Handle }>()
    await ended.closed
    await server.text('approvals', 'approve', approvalId)
    const results: string[] = []
    for (const language of [second, first, second]) {
      const process = start(language, 'continue', ...at, JSON.stringify(handle), approvalId)
      assert.equal(await process.next(), 'ready')
      process.child.stdin?.write('\n')
      results.push((await process.next<Answer>()).result)
      await process.closed
    }
    assert.deepEqual(results, ['ran', 'approval_used', 'approval_used'])
    assert.equal(readFileSync(file, 'utf8'), '1007 25\n')
  })
}
