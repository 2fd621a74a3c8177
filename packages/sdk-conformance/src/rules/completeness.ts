/** Event numbers, for SDKs that number their events: docs/decisions/0104-what-of-a-run-arrived.md. */
import assert from 'node:assert/strict'
import type { Rule } from '../rule.ts'
import { acceptAll, refuse, type ScriptedService, type SentEvent } from '../scripted-service.ts'

const NUMBER = /^([0-9a-z]{5})([1-9a-z][0-9a-z]*)(\.?)$/
const BYTES_MAX = 16

const sent = (service: ScriptedService): SentEvent[] =>
  service.requests('events').flatMap(({ json }) => json as SentEvent[])

function numberOf({ n }: SentEvent): { recorder: string; number: number; isLast: boolean } {
  const [, recorder = '', number = '', dot] = (typeof n === 'string' && NUMBER.exec(n)) || []
  assert.ok(recorder !== '', `n is ${JSON.stringify(n)}`)
  return { recorder, number: Number.parseInt(number, 36), isLast: dot === '.' }
}

export const completenessRules: Rule[] = [
  {
    id: 'completeness/numbers',
    title: 'The events of a run are numbered from 1 without a gap, and a retry keeps its number',
    async run({ service, record, flush }) {
      service.script('events', refuse(503), acceptAll)
      const ids: string[] = []
      for (let n = 0; n < 40; n++) ids.push(await record())
      await flush()
      const numbers = new Map<string, unknown>()
      for (const event of sent(service)) {
        assert.equal(numbers.get(event.eventId) ?? event['n'], event['n'], 'the number changed between two attempts')
        numbers.set(event.eventId, event['n'])
        assert.ok(`,"n":"${String(event['n'])}"`.length <= BYTES_MAX, 'the number takes too many bytes')
      }
      const read = ids.map((eventId) => numberOf({ eventId, n: numbers.get(eventId) }))
      assert.deepEqual(
        read.map(({ number }) => number),
        ids.map((_, index) => index + 1),
      )
      assert.equal(new Set(read.map(({ recorder }) => recorder)).size, 1, 'the run has several recorders')
    },
  },
  {
    id: 'completeness/last',
    title: 'The number of an outcome ends with a dot, and no other',
    async run({ service, record, flush }) {
      await record()
      await record({ eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } })
      await flush()
      const [first, second] = sent(service).map(numberOf)
      assert.deepEqual([first?.isLast, second?.isLast], [false, true])
      assert.equal(second?.number, 2)
    },
  },
  {
    id: 'completeness/dropped',
    title: 'An event that the client gives up is told by the next one of its recorder, with reason, count and time',
    async run({ service, record, flush }) {
      service.script('events', refuse(400), acceptAll)
      const before = Date.now()
      await record()
      await flush(5_000)
      await record()
      await flush()
      const event = sent(service).at(-1)
      assert.equal(event && numberOf(event).number, 2)
      const dropped = Object.values((event?.['dropped'] ?? {}) as Record<string, unknown>)
      const [count, lastAt] = (dropped[0] ?? []) as unknown[]
      assert.deepEqual([dropped.length, count], [1, 1], `dropped is ${JSON.stringify(event?.['dropped'])}`)
      assert.ok(Number(lastAt) >= before && Number(lastAt) <= Date.now(), `the time is ${String(lastAt)}`)
    },
  },
]
