/** Exports of a store that changes during the export. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { exportText } from '../../../../src/domain/data/export.ts'
import { readMark } from '../../../../src/domain/data/export-lines.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON } from '../sample.ts'

/** A page of an export has at most 1 MiB, so it has five of these. */
const LARGE = `{"text":"${'x'.repeat(200_000)}"}`
const EVENTS = 8
/** Number of pages for which an unbounded export would follow the run. */
const PAGES = 5

export function exportsSuite(open: OpenStorage) {
  describe('exports', () => {
    const storage = sharedStorage(open)
    const events = (first: number, payload: string) =>
      Array.from({ length: EVENTS }, (_, n) => event({ eventId: `e${first + n}`, payload, time: NOON + first + n }))

    test('have the events that a run had when its line was written, however much it grows, also when they resume', async () => {
      const env = newId()
      await append(storage(), env, ...events(0, LARGE))
      let pages = 0
      const growing: Pick<Storage, 'readExported' | 'readArrived' | 'listRuns' | 'findRun' | 'findEvent'> = {
        ...storage(),
        async readArrived(...args) {
          const found = await storage().readArrived(...args)
          if (++pages < PAGES) await append(storage(), env, ...events(pages * EVENTS, LARGE))
          return found
        },
      }
      const request = { environmentId: env, workspace: 'w', environment: 'e', filter: {}, given: {} }
      const lines = await linesOf(exportText(growing, { ...request, from: null }))
      const run = lines.find(({ type }) => type === 'run')
      assert.equal(run?.['eventCount'], EVENTS)
      assert.deepEqual(
        eventsOf(lines),
        events(0, '').map(({ eventId }) => eventId),
      )

      const mark = lines.find(({ type }) => type === 'mark')
      const from = readMark(String(mark?.['after']))
      assert.ok(from?.place.event)
      const rest = await linesOf(exportText(growing, { ...request, from }))
      const before = eventsOf(lines).indexOf(from.place.event) + 1
      assert.deepEqual(eventsOf(rest), eventsOf(lines).slice(before))
      assert.deepEqual(rest.at(-1), lines.at(-1))
    })
  })
}

type Line = Record<string, unknown>

async function linesOf(pieces: AsyncIterable<string>): Promise<Line[]> {
  let text = ''
  for await (const piece of pieces) text += piece
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

const eventsOf = (lines: Line[]) => lines.filter(({ type }) => type === 'event').map(({ eventId }) => eventId)
