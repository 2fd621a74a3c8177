/** Which events arrive for each way a process can end, tested with real processes. Checks a table of docs/sdk/delivery.md. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { after, test } from 'node:test'
import { Tacho } from '../src/index.ts'
import { startScriptedService, type SentEvent } from '@tacho/sdk-conformance/scripted-service.ts'
const CHILD = fileURLToPath(new URL('ends-child.ts', import.meta.url))
const DOCS = fileURLToPath(new URL('../../../docs/sdk/delivery.md', import.meta.url))

const folder = mkdtempSync(path.join(tmpdir(), 'tacho-ends-'))
after(() => rmSync(folder, { recursive: true, force: true }))
/** Loading the sources takes most of a process's time. */
const env = { ...process.env, NODE_COMPILE_CACHE: path.join(folder, 'cache') }

interface Way {
  readonly name: string
  /** Exit code or signal. It must be the same as without the SDK. */
  readonly ends: number | string
  readonly status: string
  readonly error: string
  /** Where the process ends in the test. Other places run the same code. */
  readonly places: readonly string[]
}

const FIRST = 'the first call'
/** The process does not flush before it ends. */
const LATER = 'a second later'
const THROWN = 'TypeError: order failed'
const ANYWHERE = ['a tool', 'a model call', FIRST]
const WAYS: readonly Way[] = [
  { name: 'throw', ends: 1, status: 'FAILED', error: THROWN, places: ANYWHERE },
  { name: 'rejection', ends: 1, status: 'FAILED', error: THROWN, places: ANYWHERE },
  { name: 'late throw', ends: 1, status: 'COMPLETED', error: '', places: [FIRST] },
  { name: 'exit', ends: 7, status: 'FAILED', error: 'ProcessExit: ', places: ANYWHERE },
  { name: 'end of work', ends: 0, status: 'FAILED', error: 'ProcessExit: ', places: ['a model call', FIRST] },
  { name: 'SIGTERM', ends: 'SIGTERM', status: 'CANCELLED', error: 'SIGTERM: ', places: ANYWHERE },
  { name: 'SIGINT', ends: 'SIGINT', status: 'CANCELLED', error: 'SIGINT: ', places: ['a tool', FIRST] },
  { name: 'SIGKILL', ends: 'SIGKILL', status: 'RUNNING', error: '', places: ['a model call', FIRST, LATER] },
  { name: 'out of memory', ends: 'SIGABRT', status: 'RUNNING', error: '', places: ['a model call', FIRST, LATER] },
]
const DIES = new Set(['SIGKILL', 'out of memory'])
/** Cells of the table: first without a spool, then with one. */
const rows = new Map<string, string[]>()

async function endOf(way: Way, place: string, spool: string | undefined) {
  const server = await startScriptedService()
  const sent = () => server.requests('events').flatMap(({ json }) => json as SentEvent[])
  // Long interval, so that the client delivers only its first events and, at the end, the others.
  const options = JSON.stringify({ flushIntervalMs: 3_600_000, flushTimeoutMs: 60_000, ...(spool && { spool }) })
  const flags = way.name === 'out of memory' ? ['--max-old-space-size=24'] : []
  const child = spawn(process.execPath, [...flags, CHILD, way.name, place, server.url, options], { cwd: folder, env })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  child.stdout.once('data', () => child.kill(way.name as NodeJS.Signals))
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  const live = sent()
  if (spool) {
    const next = new Tacho({ apiKey: 'key', baseUrl: server.url, spool, onDiagnostic: () => undefined })
    await next.ready()
    await next.shutdown(60_000)
  }
  const events = [...new Map(sent().map((event) => [event.eventId, event])).values()]
  const reports = server.requests('issue-records').map(({ json }) => json as Record<string, string>)
  const own = reports.filter(({ detectionType }) => detectionType === 'CUSTOM')
  await server.close()
  return {
    ended: signal ?? code,
    errors,
    live,
    events,
    issues: new Set(own.map(({ clientRecordId }) => clientRecordId)).size,
  }
}

function outcomeOf(events: readonly SentEvent[]) {
  const outcome = events.find(({ eventType }) => eventType === 'SESSION_OUTCOME')
  const payload = (outcome?.['payload'] ?? {}) as { status?: string; error?: string; exception?: unknown }
  return { status: payload.status ?? 'RUNNING', error: payload.error ?? '', payload }
}

for (const way of WAYS) {
  for (const place of way.places) {
    for (const spooled of [false, true]) {
      test(`${way.name} in ${place}, ${spooled ? 'with' : 'without'} a spool`, async () => {
        const spool = spooled ? mkdtempSync(path.join(folder, 'spool-')) : undefined
        const { ended, errors, live, events, issues } = await endOf(way, place, spool)
        assert.equal(ended, way.ends, errors)
        assert.doesNotMatch(errors, /tacho:/)
        const { status, error, payload } = outcomeOf(events)
        assert.equal(status, way.status)
        assert.ok(error.startsWith(way.error), error)
        // Everything arrives before the process ends, unless the process dies without running code.
        const labels = events.map(({ label }) => label)
        const isLost = DIES.has(way.name) && !spooled && place !== LATER
        assert.equal(labels.includes('begun'), !(isLost && place === FIRST))
        assert.equal(labels.includes('later'), place !== FIRST && place !== LATER && !isLost)
        // Without a spool, the issue may still have arrived before the process died.
        if (spooled || !DIES.has(way.name)) assert.equal(issues, 1)
        if (!DIES.has(way.name)) assert.equal(new Set(live.map(({ eventId }) => eventId)).size, events.length)
        if (way.error === THROWN) {
          const { type, message, stack, causes } = payload.exception as Record<string, string>
          assert.equal(type, 'TypeError')
          assert.doesNotMatch(JSON.stringify(payload), /hunter2/)
          assert.match(String(message), /^order failed with password=\[masked/)
          assert.match(String(stack), /ends-child\.ts/)
          assert.deepEqual(causes, [
            { type: 'RangeError', message: 'no stock' },
            { type: 'string', message: 'the warehouse is closed' },
          ])
          // The host's own report is the same as without the SDK.
          assert.match(errors, /TypeError: order failed/)
        }
        const arrived = isLost ? (place === FIRST ? 'nothing' : 'what was delivered before') : 'everything'
        const run = isLost && place === FIRST ? 'unknown' : status
        const key = `| ${way.name} | ${place} |`
        rows.set(key, [...(rows.get(key) ?? []), `${arrived}; ${run} |`])
      })
    }
  }
}

const EDGE_CHILD = fileURLToPath(new URL('ends-edge-child.ts', import.meta.url))
const edgeRows: string[] = []

for (const [way, call, status] of [
  ['end of the request', '`withRun`', 'COMPLETED'],
  ['end of the request', '`waitUntil`', 'COMPLETED'],
  ['throw', '`withRun`', 'FAILED'],
  ['throw', '`waitUntil`', 'FAILED'],
  ['SIGKILL', '`withRun`', 'RUNNING'],
] as const) {
  test(`on an edge platform: ${way} with ${call}`, async () => {
    const server = await startScriptedService()
    const child = spawn(process.execPath, [EDGE_CHILD, way, call, server.url], { cwd: folder, env })
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    child.stdout.once('data', () => child.kill('SIGKILL'))
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    const events = server.requests('events').flatMap(({ json }) => json as SentEvent[])
    await server.close()
    assert.deepEqual([signal ?? code, errors], [way === 'SIGKILL' ? 'SIGKILL' : 0, ''])
    const isLost = way === 'SIGKILL'
    assert.deepEqual(
      events.map(({ label }) => label),
      isLost ? ['begun'] : ['begun', 'later', status.toLowerCase()],
    )
    const outcome = outcomeOf(events)
    assert.equal(outcome.status, status)
    assert.equal(outcome.error.startsWith(THROWN), way === 'throw')
    edgeRows.push(`| ${way} | ${call} | ${isLost ? 'what was delivered before' : 'everything'}; ${status} |`)
  })
}

/** The part of the document between two marks. */
function assertDocumented(name: string, head: readonly string[], lines: readonly string[]): void {
  const [begin, end] = [`<!-- ends:${name} -->`, `<!-- /ends:${name} -->`]
  const table = [begin, '', ...head, ...lines, '', end].join('\n')
  const text = readFileSync(DOCS, 'utf8')
  const before = text.slice(text.indexOf(begin), text.indexOf(end) + end.length)
  if (process.env['UPDATE_DOCS']) writeFileSync(DOCS, text.replace(before, table))
  else assert.equal(before, table)
}

test('docs/sdk/delivery.md has these results', (t) => {
  const all = WAYS.flatMap(({ places }) => places).length * 2
  if ([...rows.values()].flat().length < all || edgeRows.length < 5) return t.skip('Some ways were not tried.')
  const lines = [...rows].map(([key, cells]) => [key, ...cells].join(' '))
  assertDocumented('typescript', ['| Ends by | In | Without a spool | With a spool |', '|---|---|---|---|'], lines)
  assertDocumented('edge', ['| Ends by | Recorded with | Arrives |', '|---|---|---|'], edgeRows)
})
