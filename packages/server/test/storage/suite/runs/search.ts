import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import fc from 'fast-check'
import { parseSearchQuery } from '../../../../src/domain/runs/search-query.ts'
import { indexSearch } from '../../../../src/jobs/runs/index-search.ts'
import type { NewEvent, TimelinePlace } from '../../../../src/storage/record/events.ts'
import { type SearchPlace, matchEvent, type SearchClause } from '../../../../src/storage/runs/search.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { changeShared, decidedHere, sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, newEnvironment, newId, NOON, outcome, runOf } from '../sample.ts'

/** After the time that PostgreSQL waits for running transactions. */
const LATER = NOON + 60_000

/** Works like the queue until nothing is left to index. */
export async function indexAll(storage: Storage, env: string): Promise<void> {
  const work = indexSearch({ storage, now: () => LATER, rests: 0 })
  const item = { environmentId: env, subjectId: env, attempts: 1, lastError: null }
  const hold = { kind: work.kind, owner: newId(), items: [item] }
  for (let turns = 0; ; turns++) {
    const settings = await storage.readSearchSettings(env)
    if (settings === null || (settings.state === 'ON' && settings.olderBefore === null && settings.waitingRuns === 0))
      return
    assert.ok(turns < 100, 'the index does not end')
    await work.perform(item, hold, AbortSignal.timeout(60_000))
  }
}

function clausesOf(query: string): SearchClause[] {
  const parsed = parseSearchQuery(query)
  assert.ok(parsed.ok, query)
  return parsed.clauses
}

/** Event ids of all pages. */
export async function found(storage: Storage, env: string, query: string, limit = 3, range = {}): Promise<string[]> {
  const ids: string[] = []
  let after: SearchPlace | null = null
  do {
    const search = { clauses: clausesOf(query), from: NOON - 30 * 24 * HOUR, to: NOON + HOUR, limit, after, ...range }
    const page = await storage.searchEvents(env, search)
    ids.push(...page.rows.map(({ event: { eventId } }) => eventId))
    after = page.more ? (page.lookedTo ?? page.rows.at(-1)?.place ?? null) : null
  } while (after !== null)
  return ids
}

async function searched(storage: Storage): Promise<string> {
  const env = await newEnvironment(storage)
  assert.equal(await storage.switchSearch(env, true, NOON, []), 'switched')
  await indexAll(storage, env)
  return env
}

export function searchSuite(open: OpenStorage) {
  describe('the search in one run', () => {
    const storage = sharedStorage(open)
    const PIECE = { limit: 3, pageBytes: 400 }
    const BOUNDS = { events: 100, bytes: 1_000_000, piece: PIECE }

    /** Event ids, page by page, with the number of pages. */
    async function foundIn(
      env: string,
      text: string,
      { limit = 100, ...bounds }: Partial<typeof BOUNDS & { limit: number }> = {},
    ) {
      const { id } = await runOf(storage(), env)
      const ids: string[] = []
      let [after, pages, examined] = [null as TimelinePlace | null, 0, 0]
      do {
        const page = await storage().searchRun(env, id, { text, limit, after, bounds: { ...BOUNDS, ...bounds } })
        ids.push(...page.rows.map(({ event: { eventId } }) => eventId))
        after = page.lookedTo
        examined += page.examined
        pages++
      } while (after !== null)
      return { ids: ids.join(' '), pages, examined }
    }

    test('finds a text in labels, types and payloads, in any case, in order, and not in keys', async () => {
      const env = newId()
      const says = (eventId: string, payload: unknown, given: Partial<NewEvent> = {}) =>
        event({ eventId, time: NOON + Number(eventId), payload: JSON.stringify(payload), ...given })
      await append(
        storage(),
        env,
        says('3', { a: [{ b: 'The CARD was\n"declined" by Größe' }] }),
        says('1', { card: 1, n: 4711.5 }),
        says('2', {}, { label: 'card' }),
        says('4', { text: 'nothing' }, { eventType: 'CARDS' }),
        event({ runId: 'other', payload: '{"a":"card"}' }),
      )
      await append(storage(), newId(), says('1', { a: 'card' }))
      const cases = {
        card: '2 3 4',
        'was\n"DECL': '3',
        GRÖSSE: '',
        GRÖßE: '3',
        '711.5': '1',
        'a.c': '',
        '"card"': '',
        '\\n': '',
      }
      for (const [text, ids] of Object.entries(cases)) assert.equal((await foundIn(env, text)).ids, ids, text)
    })

    test('marks where the text is', async () => {
      const env = newId()
      const text = `${'x'.repeat(100)} (Card) ${'y'.repeat(300)} card`
      await append(storage(), env, event({ payload: JSON.stringify({ text }) }))
      const { id } = await runOf(storage(), env)
      const { rows } = await storage().searchRun(env, id, { text: '(CARD', limit: 1, after: null, bounds: BOUNDS })
      const snippet = rows[0]?.snippet ?? []
      assert.deepEqual(
        snippet.filter(({ isHit }) => isHit),
        [{ text: '(Card', isHit: true }],
      )
      assert.equal(snippet[0]?.text, '…')
      assert.equal(snippet.at(-1)?.text, '…')
    })

    test('begins the text around a hit with a whole word', async () => {
      const env = newId()
      const text = `${'before '.repeat(20)}card`
      await append(storage(), env, event({ payload: JSON.stringify({ text }) }))
      const { id } = await runOf(storage(), env)
      const { rows } = await storage().searchRun(env, id, { text: 'card', limit: 1, after: null, bounds: BOUNDS })
      const shown = (rows[0]?.snippet ?? []).map((part) => part.text).join('')
      assert.match(shown, /^…(before )+card/)
    })

    test('ends a page at its hits, its events and its bytes, and goes on from there', async () => {
      const env = newId()
      const events = Array.from({ length: 20 }, (_, n) =>
        event({
          eventId: `${n}`,
          time: NOON + Math.floor(n / 4),
          payload: JSON.stringify({ text: n % 5 === 0 ? 'hit' : 'miss' }),
        }),
      )
      await append(storage(), env, ...events)
      const whole = { ids: '0 5 10 15', examined: 20 }
      assert.deepEqual(await foundIn(env, 'hit'), { ...whole, pages: 1 })
      assert.deepEqual(await foundIn(env, 'hit', { limit: 1 }), { ...whole, pages: 5 })
      assert.deepEqual(await foundIn(env, 'hit', { events: 10 }), { ...whole, pages: 2 })
      assert.deepEqual(await foundIn(env, 'hit', { events: 19 }), { ...whole, pages: 2 })
      assert.deepEqual(await foundIn(env, 'hit', { events: 20 }), { ...whole, pages: 1 })
      assert.deepEqual(await foundIn(env, 'hit', { bytes: 1 }), { ...whole, pages: 20 })
    })
  })

  describe('the search', () => {
    const storage = sharedStorage(open)

    test('finds older and newer events, newest first, in its environment only', async () => {
      const [env, other] = [await newEnvironment(storage()), await searched(storage())]
      const says = (eventId: string, text: string, given: Partial<NewEvent> = {}) =>
        event({ eventId, payload: JSON.stringify({ text }), ...given })
      const old = Array.from({ length: 7 }, (_, n) =>
        says(`old-${n}`, `A refund of ${n} euros`, { runId: `run-${n % 3}`, time: NOON - n * 5 * HOUR }),
      )
      await append(storage(), env, ...old)
      await append(storage(), other, says('foreign', 'A refund'))
      assert.equal(await storage().switchSearch(env, true, NOON, []), 'switched')
      assert.equal(await storage().switchSearch(env, true, NOON, []), 'unchanged')
      await indexAll(storage(), env)
      await indexAll(storage(), other)
      assert.deepEqual(
        await found(storage(), env, 'refund'),
        old.map(({ eventId }) => eventId),
      )
      await append(storage(), env, says('new', 'one more refund', { time: NOON - 1 }))
      assert.deepEqual(await found(storage(), env, 'refund more'), [], 'not yet indexed')
      assert.equal((await storage().readSearchSettings(env))?.waitingRuns, 1)
      await indexAll(storage(), env)
      assert.deepEqual(await found(storage(), env, 'refund more'), ['new'])
      const range = { from: NOON - 10 * HOUR, to: NOON }
      assert.deepEqual(await found(storage(), env, 'refund', 2, range), ['new', 'old-1', 'old-2'])
      assert.deepEqual(await found(storage(), other, 'refund'), ['foreign'])
    })

    test('marks what matched, as text', async () => {
      const env = await searched(storage())
      const text = `${'x '.repeat(100)}<b>Café ORDER-4711</b> & ${'y '.repeat(300)}`
      await append(storage(), env, event({ payload: JSON.stringify({ toolName: 'issue_refund', input: { text } }) }))
      await indexAll(storage(), env)
      const read = async (query: string) => {
        const search = { clauses: clausesOf(query), from: NOON - HOUR, to: NOON + HOUR, limit: 1, after: null }
        return (await storage().searchEvents(env, search)).rows[0]?.snippet ?? []
      }
      const snippet = await read('cafe order-4711 -missing tool:refund')
      assert.deepEqual(
        snippet.filter(({ isHit }) => isHit).map((part) => part.text),
        ['Café', 'ORDER-4711'],
      )
      const joined = snippet.map((part) => part.text).join('')
      assert.ok(joined.startsWith('…') && joined.endsWith('…') && joined.includes('<b>Café ORDER-4711</b> &'), joined)
      assert.deepEqual(await read('tool:"issue refund"'), [{ text: 'issue_refund', isHit: true }])
    })

    test('marks the whole text where the label is its beginning', async () => {
      const env = await searched(storage())
      const payload = JSON.stringify({ text: 'Which compensation do you offer to me?' })
      await append(storage(), env, event({ label: 'Which compensation do…', payload }))
      await indexAll(storage(), env)
      const clauses = clausesOf('compensation')
      const search = { clauses, from: NOON - HOUR, to: NOON + HOUR, limit: 1, after: null }
      const { rows } = await storage().searchEvents(env, search)
      const joined = (rows[0]?.snippet ?? []).map((part) => part.text).join('')
      assert.equal(joined, 'Which compensation do you offer to me?')
    })

    test('finds what a plain comparison finds, whatever the words and queries', decidedHere(open), async () => {
      const env = await searched(storage())
      const word = fc.constantFrom('refund', 'order', 'Café', '東京都', '4711', 'a_b', 'ERROR', 'x')
      const value = fc.oneof(
        word,
        fc.array(word, { maxLength: 4 }).map((words) => words.join(' ')),
        fc.double(),
        fc.string(),
      )
      const payload = fc.dictionary(
        fc.constantFrom('text', 'toolName', 'model', 'input'),
        fc.oneof(value, fc.array(value)),
      )
      const events = fc.array(
        fc.record({
          payload,
          label: word,
          eventType: fc.constantFrom('ERROR', 'LLM_CALL'),
          agentName: fc.constantFrom('Refund bot', 'x'),
          runId: fc.constantFrom('a', 'b'),
          time: fc.integer({ min: NOON - 3 * HOUR, max: NOON }),
        }),
        { minLength: 1, maxLength: 12 },
      )
      const item = fc
        .record({
          minus: fc.constantFrom('', '', '', '-'),
          field: fc.constantFrom('', '', '', 'tool:', 'type:', 'agent:', 'model:', 'label:'),
          value: fc.oneof(
            word,
            fc.tuple(word, word).map((both) => `"${both.join(' ')}"`),
          ),
        })
        .map(({ minus, field, value: text }) => `${minus}${field}${text}`)
      const queries = fc
        .array(item, { minLength: 1, maxLength: 3 })
        .filter((items) => items.some((one) => !one.startsWith('-')))
      const all: (NewEvent & { payload: string })[] = []
      await fc.assert(
        fc.asyncProperty(events, fc.array(queries, { minLength: 8, maxLength: 8 }), async (given, asked) => {
          const added = given.map((one) => {
            const payload = JSON.stringify(one.payload)
            return { ...event({ ...one, payload }), payload }
          })
          all.push(...added)
          await append(storage(), env, ...added)
          await indexAll(storage(), env)
          for (const items of asked) {
            const query = items.join(' ')
            const expected = all.filter((one) => matchEvent(one, clausesOf(query)) !== null)
            const ids = await found(storage(), env, query, 5)
            assert.deepEqual(ids.toSorted(), expected.map(({ eventId }) => eventId).toSorted(), query)
            const times = ids.map((id) => all.find(({ eventId }) => eventId === id)?.time ?? 0)
            assert.deepEqual(
              times,
              times.toSorted((a, b) => b - a),
              'newest first',
            )
          }
        }),
        { numRuns: 15 },
      )
    })

    test('ends a page after a bounded number of compared events', async () => {
      const env = await searched(storage())
      const count = LIMITS.searchedEvents + 1
      const many = Array.from({ length: count }, (_, n) =>
        event({ time: NOON - n, label: n < count - 1 ? 'b a' : 'a b', eventId: `${n}` }),
      )
      for (let at = 0; at < count; at += 100) await append(storage(), env, ...many.slice(at, at + 100))
      await indexAll(storage(), env)
      const search = { clauses: clausesOf('"a b"'), from: NOON - HOUR, to: NOON + HOUR, limit: 5, after: null }
      const page = await storage().searchEvents(env, search)
      assert.deepEqual([page.rows.length, page.more], [0, true])
      assert.deepEqual(await found(storage(), env, '"a b"'), [`${count - 1}`])
    })

    test('forgets runs that are no longer there, which would stop older ones from being indexed', async () => {
      const env = await searched(storage())
      for (const runId of ['gone', 'kept']) await append(storage(), env, event({ runId, label: 'Refund order' }))
      await indexAll(storage(), env)
      await append(storage(), env, event({ runId: 'gone', label: 'Refund order' }))
      // A crash of a former version could leave this state: the run is deleted, but it still waits for the index.
      await changeShared(open, "DELETE FROM runs WHERE environment_id = ? AND run_id = 'gone'", env)
      await indexAll(storage(), env)
      assert.equal((await storage().readSearchSettings(env))?.waitingRuns, 0)
      assert.equal((await found(storage(), env, 'refund')).length, 1)
    })

    test('deletes its index when it is switched off, and indexes again when switched on', async () => {
      const [env, other] = [await searched(storage()), await searched(storage())]
      for (const one of [env, other]) await append(storage(), one, event({ label: 'refund' }), outcome('COMPLETED'))
      await indexAll(storage(), env)
      await indexAll(storage(), other)
      assert.equal(await storage().switchSearch(env, false, NOON, []), 'switched')
      assert.equal(await storage().switchSearch(env, true, NOON, []), 'removing')
      await append(storage(), env, event({ label: 'refund' }))
      await indexAll(storage(), env)
      assert.equal(await storage().readSearchSettings(env), null)
      assert.deepEqual(await found(storage(), env, 'refund'), [])
      assert.equal((await found(storage(), other, 'refund')).length, 1)
      assert.equal(await storage().switchSearch(env, false, NOON, []), 'unchanged')
      assert.equal(await storage().switchSearch(env, true, NOON, []), 'switched')
      await indexAll(storage(), env)
      assert.equal((await found(storage(), env, 'refund')).length, 2)
    })
  })
}
