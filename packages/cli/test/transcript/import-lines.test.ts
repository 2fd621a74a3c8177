import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { test } from 'node:test'
import type { EventInput } from '@tacho/contract/record/event.ts'
import { failed } from '../../src/engine/stop.ts'
import type { Recorder } from '../../src/record/recorder-client.ts'
import { importLines, LONGEST_LINE_BYTES } from '../../src/record/transcript/import-lines.ts'
import { newReport, spokenReport, type ImportReport } from '../../src/record/transcript/import-report.ts'
import { OPTIONS } from './chats.ts'
import { REAL_TRANSCRIPTS, withoutRealTranscripts } from '../real-transcripts.ts'

const NOW = Date.UTC(2026, 10, 20, 15, 30)
/** Real transcripts, if available: JSON lines with a `reward`. */

const GOOD = '{"messages":[{"role":"user","content":"a"}],"reward":1}'

/** Accepts everything; `most` is the highest number of concurrent runs. */
function memory(): Recorder & { events: EventInput[]; most: number } {
  let underWay = 0
  const recorder = {
    events: [] as EventInput[],
    most: 0,
    async record(given: Iterable<EventInput>) {
      const events = [...given]
      recorder.most = Math.max(recorder.most, ++underWay)
      await new Promise((done) => setImmediate(done))
      recorder.events.push(...events)
      underWay -= 1
      return { accepted: events.length, refused: [], uncounted: [] }
    },
    firstEvent: async () => null,
  }
  return recorder
}

async function importText(chunks: Iterable<string | Buffer>, recorder: Recorder | null): Promise<ImportReport> {
  const report = newReport('test', recorder === null)
  const stream = (async function* () {
    for (const chunk of chunks) yield Buffer.from(chunk)
  })()
  const ignore = (): void => undefined
  await importLines(stream, report, { options: OPTIONS, recorder, now: NOW, onProblem: ignore, onProgress: ignore })
  return report
}

test('broken lines are reported by number and the others imported', async () => {
  const recorder = memory()
  const report = await importText([`{"messages":\n\n${GOOD}\nnull\n`], recorder)
  assert.deepEqual(report.problems, [
    { line: 1, problem: 'it is not valid JSON' },
    { line: 4, problem: 'the line is not a JSON object' },
  ])
  assert.deepEqual([report.lines, report.runs, report.events, report.acceptedEvents], [3, 1, 2, 2])
  assert.ok(report.finished)
})

test('an indented JSON document is refused at once, with what makes lines of it', async () => {
  for (const start of ['[\n  {', '\n{\r\n', '[{\n']) {
    await assert.rejects(importText([`${start}"messages": []`], memory()), /one JSON object per line, such as `jq/)
  }
})

test('a line over the limit is skipped without keeping it', async () => {
  const chunk = Buffer.alloc(1024 ** 2, 0x78)
  const report = await importText(
    [...Array.from({ length: LONGEST_LINE_BYTES / 1024 ** 2 + 1 }, () => chunk), `\n${GOOD}`],
    memory(),
  )
  assert.deepEqual(report.problems, [{ line: 1, problem: 'it is longer than 32 MiB and was skipped' }])
  assert.equal(report.runs, 1)
})

test('duplicate lines are one run', async () => {
  const report = await importText([`${GOOD}\n${GOOD}\r\n`], memory())
  assert.deepEqual([report.lines, report.runs, report.repeatedLines], [2, 1, 1])
})

test('a few runs are recorded concurrently', async () => {
  const recorder = memory()
  await importText(
    Array.from({ length: 50 }, (_, index) => `{"n":${index},"messages":[{"role":"user","content":"x"}]}\n`),
    recorder,
  )
  assert.equal(recorder.events.length, 100)
  assert.equal(recorder.most, 4)
})

test('a dry run sends nothing and counts the same', async () => {
  const report = await importText([GOOD], null)
  assert.deepEqual([report.runs, report.events, report.acceptedEvents], [1, 2, 0])
  assert.match(
    spokenReport(report, { format: 'openai', runPrefix: 'import-' }, []).join(),
    /1 run with 2 events would be recorded; nothing was sent/,
  )
})

test('rejected events are reported by line and reason', async () => {
  const refused = [{ eventId: 'x', code: 'timestamp_too_old', message: 'Too old.' }]
  const recorder = { ...memory(), record: async () => ({ accepted: 1, refused, uncounted: [] }) }
  const report = await importText([GOOD], recorder)
  assert.deepEqual(report.problems, [{ line: 1, problem: 'the server rejected 1 event: Too old (timestamp_too_old)' }])
  assert.equal(report.rejectedEvents, 1)
})

test('an unreachable server ends the import, and the report says that it is not finished', async () => {
  const report = newReport('test', false)
  const recorder = { ...memory(), record: () => Promise.reject(failed('No answer.')) }
  const stream = (async function* () {
    for (let index = 0; ; index++) yield Buffer.from(`{"n":${index},"messages":[{"role":"user","content":"x"}]}\n`)
  })()
  const ignore = (): void => undefined
  const given = { options: OPTIONS, recorder, now: NOW, onProblem: ignore, onProgress: ignore }
  await assert.rejects(importLines(stream, report, given), { message: 'No answer.' })
  assert.equal(report.finished, false)
  assert.match(
    spokenReport(report, { format: 'openai', runPrefix: 'import-' }, []).join('\n'),
    /run the same command again/,
  )
})

test('at most 1,000 problems are kept', async () => {
  const report = await importText(['x\n'.repeat(1_500)], memory())
  assert.deepEqual([report.problemLines, report.problems.length], [1_500, 1_000])
})

test('real transcripts: 150 runs, each event once', { skip: withoutRealTranscripts }, async () => {
  const recorder = memory()
  const report = newReport(REAL_TRANSCRIPTS, false)
  const ignore = (): void => undefined
  const given = { options: OPTIONS, recorder, now: NOW, onProblem: ignore, onProgress: ignore }
  await importLines(createReadStream(REAL_TRANSCRIPTS), report, given)
  assert.equal(new Set(recorder.events.map(({ runId }) => runId)).size, report.runs)
  assert.equal(new Set(recorder.events.map(({ eventId }) => eventId)).size, report.events)
  assert.deepEqual(report.problems, [])
})
