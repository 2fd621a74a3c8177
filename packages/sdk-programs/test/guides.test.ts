/**
 * Runs every complete program of the guides, with the files and commands of its page, in development and in production.
 * A real service stores its runs. Programs that need packages need TACHO_TEST_FRAMEWORKS=1.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { API_KEY, startServer, type TestServer } from '../../cli/test/tacho.ts'
import { programsInterpreter, PYTHON_SDK, withoutPrograms } from '../../sdk-conformance/test/python.ts'
import { freePort } from '../../server/test/setup/free-port.ts'
import { OLD_NODE } from './blocks.ts'
import { NEXT_16 } from './next.ts'
import { packagesOf, startPlace, type Place } from './place.ts'

interface Guide {
  readonly page: string
  /** Section of the program, if the page has several programs. */
  readonly section?: string
  readonly agentName: string
  /** Folder below `programs/` with the files of a new project. */
  readonly project?: string
  readonly skip?: string | false
  readonly packages?: readonly string[]
  readonly python?: true
  /** Another command that starts the program, which the page does not show. */
  readonly also?: readonly string[]
}

const NEST = packagesOf([
  '@nestjs/cli@12.0.8',
  '@nestjs/common@11.2.10',
  '@nestjs/core@11.2.10',
  '@nestjs/platform-express@11.2.10',
  'reflect-metadata@0.2.2',
  'rxjs@7.8.2',
  'typescript@5.9.3',
  '@types/node@26.6.6',
])
const IN_PYTHON = { python: true, skip: withoutPrograms } as const

const GUIDES: readonly Guide[] = [
  // These packages are dependencies of this repository's tools.
  { page: 'servers', section: 'Express', agentName: 'express' },
  { page: 'servers', section: 'Hono', agentName: 'hono' },
  { page: 'servers', section: 'Fastify', agentName: 'fastify' },
  { page: 'servers', section: 'NestJS', agentName: 'nest', project: 'nest-guide', ...NEST },
  { page: 'nextjs', agentName: 'shop', project: 'next-guide', ...NEXT_16, also: ['npx next dev --webpack'] },
  { page: 'servers', section: 'Flask on gunicorn', agentName: 'flask', ...IN_PYTHON },
  { page: 'servers', section: 'Django', agentName: 'django', ...IN_PYTHON },
  { page: 'servers', section: 'Celery', agentName: 'celery', ...IN_PYTHON },
  { page: 'fastapi', agentName: 'Support agent', ...IN_PYTHON },
]

/** Index of the command that starts a program in production. */
const IN_PRODUCTION = 1

const POLICY = `
workspace: default
policies:
  refunds:
    condition: tool.name == "refund" && tool.input.amount > 100.0
    severity: HIGH
    action: BLOCK
environments:
  development:
    policies: [refunds]
`

/** The page's files, its commands that start the program, and its request. */
function readGuide({ page, section }: Guide, port: number) {
  const whole = readFileSync(new URL(`../../../docs/sdk/${page}.md`, import.meta.url), 'utf8')
  const from = section === undefined ? 0 : whole.indexOf(`\n### ${section}\n`)
  assert.ok(from >= 0, `${page} has no section ${section}`)
  const end = section === undefined ? -1 : whole.slice(from + 4).search(/^##/m)
  const text = whole.slice(from, end < 0 ? undefined : from + 4 + end).replaceAll(/\b[38]000\b/g, String(port))
  const files = [...text.matchAll(/^```(?:js|ts|python)\n(?:\/\/|#) (\S+)\n(.*?)^```$/gms)]
  const command = (pattern: RegExp) => pattern.exec(text)?.[1] ?? assert.fail(`${page}: no command ${pattern}`)
  return {
    files: files.map(([, name = '', code = '']) => ({ name, code })),
    ways: [command(/^(.*?) +# while you develop$/m), command(/^(.*?) +# in production$/m)],
    ask: command(/^((?:curl|python) .*\b20\b.*)$/m),
  }
}

let service: TestServer
before(async () => {
  service = await startServer()
  writeFileSync(path.join(service.directory, 'tacho.yaml'), POLICY)
  await service.text('apply', '-f', path.join(service.directory, 'tacho.yaml'), '--yes')
})
after(() => service.stop())

/** The service stores an ended run within a second, but the machine may be busy. */
const STORED_MS = 60_000

interface StoredRun {
  readonly runId: string
  readonly status: string
  readonly agent: { name: string }
  readonly events: { eventType: string; payload: Record<string, unknown> }[]
}

async function read<T>(address: string): Promise<T> {
  const reply = await fetch(`${service.url}/openapi/v1${address}`, { headers: { 'x-api-key': API_KEY } })
  assert.equal(reply.status, 200)
  return (await reply.json()) as T
}

/** Waits for the ended run in which the agent got this question. */
async function storedRun(agentName: string, question: string): Promise<StoredRun> {
  for (const deadline = performance.now() + STORED_MS; ;) {
    assert.ok(performance.now() < deadline, `no run of ${agentName} that was asked "${question}" has ended`)
    const { items } = await read<{ items: StoredRun[] }>('/runs?limit=50')
    const ended = items.filter(({ agent, status }) => agent.name === agentName && status !== 'RUNNING')
    for (const { runId } of ended) {
      const run = await read<StoredRun>(`/runs/${encodeURIComponent(runId)}`)
      if (run.events.some(({ payload }) => payload['text'] === question)) return run
    }
    await sleep(100)
  }
}

/** The event types of a run, without the steps of processes that leave a run. */
const typesOf = ({ events }: StoredRun) =>
  events
    .map(({ eventType }) => eventType)
    .filter((type) => type !== 'AGENT_STEP')
    .sort()
const CALLED = ['SESSION_OUTCOME', 'TOOL_CALL', 'TOOL_START', 'USER_INPUT']
const BLOCKED = ['POLICY_DECISION', 'SESSION_OUTCOME', 'USER_INPUT']

for (const guide of GUIDES) {
  const { page, section, agentName, project = 'guide', packages = [], python, skip = false, also = [] } = guide
  test(`${page}${section === undefined ? '' : `: ${section}`}`, { skip }, async (t) => {
    const port = await freePort()
    const { files, ways, ask } = readGuide(guide, port)
    const place = await startPlace(t, project, packages)
    for (const { name, code } of files) {
      const file = path.join(place.folder, name)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, code)
    }
    const env = {
      TACHO_URL: service.url,
      TACHO_API_KEY: API_KEY,
      PORT: String(port),
      ...(python && {
        PYTHONPATH: path.join(PYTHON_SDK, 'src'),
        PATH: [path.dirname(programsInterpreter), process.env['PATH']].join(path.delimiter),
      }),
    }
    // Programs in plain JavaScript must also start on Node 20.
    const onOld = (ways[IN_PRODUCTION] ?? '').replace(/\bnode (?=\S+\.js$)/, `${OLD_NODE?.[1]} `)
    const old = OLD_NODE === undefined || onOld === ways[IN_PRODUCTION] ? [] : [onOld]
    for (const [at, way] of [...ways, ...also, ...old].entries())
      await t.test(way, () => checkWay(place, way, (amount) => ask.replace(/\b20\b/, String(amount)), at, env))
  })

  /** @param at makes the amounts of this way its own. */
  async function checkWay(
    place: Place,
    way: string,
    command: (amount: number) => string,
    at: number,
    env: Record<string, string>,
  ): Promise<void> {
    // The Python environment was renamed after its installation, so its scripts cannot start.
    const shell = (text: string) =>
      place.start(['sh', '-c', text.replace(/^(flask|gunicorn|celery|uvicorn) /, 'python -m $1 ')], env)
    const answerTo = async (amount: number) => {
      const asked = shell(command(amount))
      await once(asked.child, 'close')
      return asked.stdout()
    }
    const server = shell(way)
    // Wait until the server listens and has its policies.
    while (!(await answerTo(1)).trim().endsWith('Refunded 1.')) {
      assert.equal(server.child.exitCode, null, server.output())
      await sleep(200)
    }
    const [small, large, left, last] = [10 + at, 500 + at, 30 + at, 20 + at]
    const [paid, refused] = await Promise.all([answerTo(small), answerTo(large)])
    assert.match(paid, new RegExp(`Refunded ${small}\\.\\s*$`))
    assert.match(refused, /policy/)
    const leaving = shell(command(left))
    await once(leaving.child.stdout, 'data')
    await leaving.end('SIGINT')
    const stored = (amount: number) => storedRun(agentName, `Refund ${amount}`)
    const [paidRun, refusedRun, leftRun] = await Promise.all([stored(small), stored(large), stored(left)])
    assert.deepEqual([paidRun.status, typesOf(paidRun)], ['COMPLETED', CALLED])
    assert.deepEqual([refusedRun.status, typesOf(refusedRun)], ['COMPLETED', BLOCKED])
    assert.equal(leftRun.status, 'CANCELLED')
    // In production, events arrive although the server ends at once. In development, a reloader may kill the process first.
    const isProduction = at === IN_PRODUCTION
    if (isProduction) await answerTo(last)
    await server.end('SIGTERM')
    if (isProduction) assert.equal((await stored(last)).status, 'COMPLETED')
    assert.doesNotMatch(server.output(), /^tacho /m)
  }
}

test('serverless: AWS Lambda, two instances at once and one more, each frozen with its answer', async (t) => {
  const page = readFileSync(new URL('../../../docs/sdk/serverless.md', import.meta.url), 'utf8')
  const [, program = ''] = /^```ts\n(\/\/ AWS Lambda.*?)^```$/ms.exec(page) ?? []
  const place = await startPlace(t, 'guide', [])
  writeFileSync(path.join(place.folder, 'handler.ts'), program)
  const invoke = async () => {
    const instance = place.start(['node', 'handler.ts'], { TACHO_URL: service.url, TACHO_API_KEY: API_KEY })
    const [answer] = (await once(instance.child.stdout, 'data')) as [string]
    await instance.end('SIGKILL')
    assert.equal(answer.trim(), '200')
  }
  await Promise.all([invoke(), invoke()])
  await invoke()
  const { items } = await read<{ items: StoredRun[] }>('/runs?limit=50')
  const statuses = items.filter(({ agent }) => agent.name === 'assistant').map(({ status }) => status)
  assert.deepEqual(statuses, ['COMPLETED', 'COMPLETED', 'COMPLETED'])
})
