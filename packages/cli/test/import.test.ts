import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import type { ImportReport } from '../src/record/transcript/import-report.ts'
import { runCommand, startServer } from './tacho.ts'
import { REAL_TRANSCRIPTS, withoutRealTranscripts } from './real-transcripts.ts'

/** Real transcripts, if available: JSON lines with a `reward` of 0 or 1. */

const server = await startServer()
after(() => server.stop())

interface Run {
  runId: string
  status: string
  eventCount: number
  differingRetries: number
  sessionId: string | null
  agent: { name: string }
  usage: { totalTokens: number }
}

async function runsOf(agent: string): Promise<Run[]> {
  const { stdout } = await server.tacho(['runs', 'list', '--all', '--agent', agent, '--json'])
  return (JSON.parse(stdout) as { items: Run[] }).items
}

async function importText(
  lines: string,
  ...args: string[]
): Promise<{ code: number | null; report: ImportReport; stderr: string }> {
  const { code, stdout, stderr } = await server.tacho(['import', '-', '--json', ...args], lines)
  return { code, report: JSON.parse(stdout) as ImportReport, stderr }
}

function chat(question: string, more: object = {}): string {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  const messages = [
    { role: 'user', content: question },
    { role: 'assistant', content: 'An answer.', usage },
  ]
  return `${JSON.stringify({ messages, ...more })}\n`
}

test('a file imported twice is stored and counted once', async () => {
  const file = path.join(server.directory, 'chats.jsonl')
  writeFileSync(file, chat('one', { reward: 1, user: 's1' }) + chat('two', { reward: 0, user: 's1' }) + chat('three'))
  const line = ['import', file, '--agent-name', 'Twice', '--field-outcome', 'reward', '--session-field', 'user']
  for (const stdout of [await server.tacho(line), await server.tacho(line)].map((result) => result.stdout)) {
    assert.match(
      stdout,
      /^3 runs with 9 events: 9 are stored, by this import or an earlier one; 0 rejected\.\nThe times of all runs are made up, .* on \d{4}-\d\d-\d\d \(UTC\), one second apart\.\n1 run had no outcome: closed at the last recorded time\.\nLook: `tacho runs list --search "import-"`\.\n$/,
    )
  }
  const runs = await runsOf('Twice')
  assert.equal(runs.length, 3)
  assert.deepEqual(new Set(runs.map(({ status }) => status)), new Set(['COMPLETED', 'FAILED']))
  for (const { eventCount, differingRetries, usage } of runs) {
    assert.deepEqual([eventCount, differingRetries, usage.totalTokens], [3, 0, 15])
  }
  assert.equal(runs.filter(({ sessionId }) => sessionId === 's1').length, 2)
})

test('a file of another format says how to name it, and where to look at what was imported', async () => {
  const file = path.join(server.directory, 'traces.json')
  const observation = {
    id: 'o1',
    type: 'SPAN',
    name: 'ask',
    startTime: '2026-11-01T10:00:00Z',
    endTime: '2026-11-01T10:00:01Z',
  }
  const trace = { id: 'trace-77', name: 'support', timestamp: '2026-11-01T10:00:00Z', observations: [observation] }
  writeFileSync(file, JSON.stringify([trace]))
  const wrong = await server.tacho(['import', file])
  assert.equal(wrong.code, 1)
  assert.match(
    wrong.stdout,
    /\nThe file was read as openai\. Is it another format\? Name it: --format otlp, langfuse, phoenix\.\n$/,
  )
  const right = await server.tacho(['import', file, '--format', 'langfuse'])
  assert.match(right.stdout, /\nLook: `tacho runs show "trace-77"`\.\n$/)
  assert.match((await server.tacho(['runs', 'show', 'trace-77'])).stdout, /COMPLETED {2}trace-77/)
})

test('broken lines are reported, the others imported, and the exit code is 1', async () => {
  const large = chat('x'.repeat(300_000))
  const orphan = `${JSON.stringify({ messages: [{ role: 'tool', tool_call_id: 'c1', content: 'x' }] })}\n`
  const { code, report, stderr } = await importText(
    `{"messages":\n${chat('good')}{}\n${large}${orphan}`,
    '--agent-name',
    'Broken',
  )
  assert.equal(code, 1)
  assert.deepEqual(
    report.problems.map(({ line }) => line),
    [1, 3, 4, 5],
  )
  for (const { line } of report.problems) assert.match(stderr, new RegExp(`^line ${line}: `, 'm'))
  assert.deepEqual([report.runs, report.acceptedEvents, report.rejectedEvents], [3, 8, 0])
  assert.equal((await runsOf('Broken')).length, 3)
})

test('a dry run needs no server and no key, and stores nothing', async () => {
  const { code, stdout } = await runCommand(
    ['import', '-', '--dry-run'],
    { TACHO_URL: 'http://127.0.0.1:1' },
    chat('dry'),
  )
  assert.equal(code, 0)
  assert.match(stdout, /^1 run with 3 events would be recorded; nothing was sent\.\nThe times of all runs are made up/)
})

test('an interrupted import continues with the same times', async () => {
  const messages = Array.from({ length: 150 }, (_, index) => ({ role: 'user', content: `message ${index}` }))
  const line = `${JSON.stringify({ messages })}\n`
  await importText(line, '--agent-name', 'Cut')
  const [run] = await runsOf('Cut')
  const read = async (): Promise<string[]> => {
    const { stdout } = await server.tacho(['runs', 'show', run?.runId ?? '', '--json'])
    return (JSON.parse(stdout) as { events: { timestamp: string }[] }).events.map(({ timestamp }) => timestamp)
  }
  const before = await read()
  assert.equal(Date.parse(before[150] ?? '') - Date.parse(before[149] ?? ''), 1_000)
  await importText(line, '--agent-name', 'Cut')
  assert.deepEqual(await read(), before)
  assert.equal((await runsOf('Cut'))[0]?.differingRetries, 0)
})

test('a key without the read scope fails with a sentence', async () => {
  const made = await server.tacho(['keys', 'create', '--name', 'writer', '--scopes', 'events:write'])
  const variables = { ...server.variables, TACHO_API_KEY: made.stdout.trim() }
  const { code, stderr } = await runCommand(['import', '-'], variables, chat('no scope'))
  assert.equal(code, 1)
  assert.match(stderr, /usage:read.*\(forbidden, request/)
})

test('a missing file is named', async () => {
  const { code, stderr } = await server.tacho(['import', path.join(server.directory, 'nothing.jsonl')])
  assert.equal(code, 2)
  assert.match(stderr, /nothing\.jsonl" does not exist\.\n$/)
  assert.match((await server.tacho(['import', server.directory])).stderr, /is a directory\.\n$/)
})

test('real transcripts imported twice: each run and each event once', { skip: withoutRealTranscripts }, async () => {
  const line = ['import', REAL_TRANSCRIPTS, '--agent-name', 'Real', '--json']
  const [first, second] = [await server.tacho(line), await server.tacho(line)]
  const report = JSON.parse(first.stdout) as ImportReport
  assert.deepEqual([first.code, second.code], [0, 0])
  const runs = await runsOf('Real')
  assert.equal(runs.length, report.runs)
  assert.equal(
    runs.reduce((sum, { eventCount }) => sum + eventCount, 0),
    report.events,
  )
  assert.ok(runs.every(({ status, differingRetries }) => status !== 'RUNNING' && differingRetries === 0))
})
