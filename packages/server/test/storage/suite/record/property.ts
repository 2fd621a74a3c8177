import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hash } from 'node:crypto'
import fc from 'fast-check'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import {
  partsOf,
  type TokenParts,
  readUncosted,
  TOKEN_PARTS,
  type UncostedCalls,
  withMedia,
} from '../../../../src/storage/runs/usage.ts'
import { type RunRow, type UsageHourRow, traitLine } from '../../../../src/storage/runs/runs.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, newId, NOON, sampleFailure } from '../sample.ts'

const RUNS = ['a', 'b', 'c']
const MODELS = ['', 'm1', 'm2']
const VERSIONS = [newId(), newId()]

/** Events whose effect must not depend on their order: a run has one agent, one session and at most one outcome. */
const events = fc
  .array(
    fc.record({
      run: fc.nat(RUNS.length - 1),
      minute: fc.nat(180),
      call: fc.option(
        fc.record({
          model: fc.constantFrom(...MODELS),
          promptTokens: fc.nat(1000),
          completionTokens: fc.nat(1000),
          totalTokens: fc.oneof(fc.nat(1000), fc.constant(Number.MAX_SAFE_INTEGER)),
          costNanos: fc.nat(1e9),
          uncosted: fc.option(
            fc
              .record({ context: fc.constantFrom(0, 200_000, withMedia(0)), tokens: fc.array(fc.nat(1000)) })
              .map(({ context, tokens }) => ({ context, ...partsOf((at) => tokens[at] ?? 1) })),
            { nil: null },
          ),
        }),
        { nil: null },
      ),
      failure: fc.option(
        fc
          .record({ message: fc.constantFrom('first', 'second'), name: fc.constantFrom('a', 'b', 'c') })
          .map(({ message, name }) => sampleFailure({ message, place: { kind: 'tool', name } })),
      ),
      question: fc.option(fc.constantFrom('Where?', 'When?'), { nil: null }),
      answer: fc.option(fc.constantFrom('Here.', 'Now.'), { nil: null }),
      tool: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: null }),
      version: fc.option(fc.constantFrom(...VERSIONS), { nil: null }),
      end: fc.constantFrom('COMPLETED' as const, 'CANCELLED' as const),
    }),
    { minLength: 1, maxLength: 30 },
  )
  .map((specs) =>
    specs.map(({ run, minute, call, failure, question, answer, tool, version, end }, index): NewEvent => {
      const isOutcome = specs.findIndex((spec) => spec.run === run) === index && run > 0
      return event({
        eventId: `e${index}`,
        runId: RUNS[run] ?? '',
        sessionId: `session of ${run}`,
        agentId: `agent ${run % 2}`,
        // One name for each time, so that the newest name is unambiguous.
        agentName: `name at ${minute}`,
        time: NOON + minute * 60_000,
        usage: call,
        promptUse: version === null ? null : { versionId: version, problem: null },
        failure,
        said: { question, answer },
        traits: tool === null ? null : traitLine('tool', tool),
        outcome: isOutcome ? end : null,
      })
    }),
  )

const deliveries = events.chain((sent) => {
  const again = fc.array(fc.nat(sent.length - 1), { maxLength: 20 })
  const order = again.chain((repeats) =>
    fc.shuffledSubarray([...sent.keys(), ...repeats], { minLength: sent.length + repeats.length }),
  )
  return fc.record({ sent: fc.constant(sent), order, cuts: fc.array(fc.integer({ min: 1, max: 7 })) })
})

function batchesOf(sent: NewEvent[], order: number[], cuts: number[]): NewEvent[][] {
  const rest = order.flatMap((index) => sent[index] ?? [])
  const batches = cuts.map((size) => rest.splice(0, size))
  return [...batches, rest]
}

const saturating = (numbers: number[]) => numbers.reduce((sum, n) => Math.min(sum + n, Number.MAX_SAFE_INTEGER), 0)

function sumsOf(list: NewEvent[]) {
  return {
    promptTokens: saturating(list.map(({ usage }) => usage?.promptTokens ?? 0)),
    completionTokens: saturating(list.map(({ usage }) => usage?.completionTokens ?? 0)),
    totalTokens: saturating(list.map(({ usage }) => usage?.totalTokens ?? 0)),
    costNanos: saturating(list.map(({ usage }) => usage?.costNanos ?? 0)),
  }
}

/** Sorts the sums of calls without a cost, because their order does not matter. */
const inAnyOrder = (list: readonly UncostedCalls[]) =>
  list
    .map(({ model, context, calls, ...rest }) => [model, context, calls, ...TOKEN_PARTS.map((part) => rest[part])])
    .toSorted(byText)

function uncostedOf(list: NewEvent[]) {
  return summed(
    list.flatMap(({ usage }) => (usage?.uncosted ? [{ ...usage.uncosted, model: usage.model, calls: 1 }] : [])),
  )
}

function summed(calls: readonly UncostedCalls[]) {
  const groups = Map.groupBy(calls, ({ model, context }) => `${context} ${model}`)
  const added = (one: UncostedCalls, other: UncostedCalls): UncostedCalls => {
    const parts = TOKEN_PARTS.map((part) => [part, one[part] + other[part]])
    return { ...one, ...(Object.fromEntries(parts) as TokenParts), calls: one.calls + other.calls }
  }
  return inAnyOrder([...groups.values()].map((group) => group.reduce(added)))
}

/** The expected result for a set of events, written as simply as possible. */
function expected(sent: NewEvent[]) {
  const newestName = (agentId: string | null) =>
    sent.filter((other) => other.agentId === agentId).toSorted((a, b) => b.time - a.time)[0]?.agentName
  const runs = Map.groupBy(sent, ({ runId }) => runId)
  const hours = Map.groupBy(sent, ({ agentId, time, usage }) =>
    JSON.stringify([time - (time % HOUR), agentId, usage?.model ?? '']),
  )
  return {
    runs: [...runs].map(([runId, list]) => {
      const end = list.find(({ outcome }) => outcome !== null)
      return {
        runId,
        sessionId: list[0]?.sessionId,
        status: end?.outcome ?? 'RUNNING',
        startedAt: Math.min(...list.map(({ time }) => time)),
        endedAt: end?.time ?? null,
        userId: null,
        agentExternalId: list[0]?.agentId,
        agentName: newestName(list[0]?.agentId ?? null),
        agentDisplayName: null,
        eventCount: list.length,
        differingRetries: 0,
        errorCount: list.filter(({ failure, outcome }) => failure !== null && outcome !== 'CANCELLED').length,
        traits: [...new Set(list.flatMap(({ traits }) => traits ?? []))].toSorted().join(''),
        ...failureFields(list),
        said: saidField(list),
        lastEventAt: Math.max(...list.map(({ time }) => time)),
        receivedAt: NOON,
        pinnedAt: null,
        ruleClosedAt: null,
        payloadsRemoved: 0,
        recorders: null,
        uncosted: uncostedOf(list),
        ...sumsOf(list),
      }
    }),
    versions: VERSIONS.map((version) => {
      const list = sent.filter(({ promptUse }) => promptUse?.versionId === version)
      return list.length === 0 ? null : { events: list.length, uncosted: uncostedOf(list) }
    }),
    hours: [...hours].map(([key, list]) => {
      const [hour, agentId, model] = JSON.parse(key) as [number, string, string]
      return {
        hour,
        agentName: newestName(agentId),
        model,
        events: list.length,
        uncosted: uncostedOf(list),
        ...sumsOf(list),
      }
    }),
  }
}

/** The error of the outcome, else the latest error; and the tools that failed before, the latest first. */
function failureFields(list: NewEvent[]) {
  const failed = list.filter(({ failure }) => failure !== null)
  const later = (a: NewEvent, b: NewEvent) => a.time - b.time || (a.eventId < b.eventId ? -1 : 1)
  const kept = failed.find(({ outcome }) => outcome !== null) ?? failed.toSorted(later).at(-1)
  if (!kept?.failure) return { failure: null, failureMessage: null }
  const { eventId, time, failure, outcome } = kept
  const { errorClass, place } = failure
  const latest = new Map<string, number>()
  for (const { outcome: end, failure: one, time: at } of failed) {
    if (end !== null || !one) continue
    const mark = hash('sha256', one.message ?? '', 'base64url').slice(0, 8)
    const text = JSON.stringify([one.errorClass, mark, one.place.kind, one.place.name])
    latest.set(text, Math.max(latest.get(text) ?? 0, at))
  }
  const places = [...latest]
    .toSorted(([a, atA], [b, atB]) => atB - atA || (a < b ? -1 : 1))
    .slice(0, 4)
    .map(([text, at]) => [at, ...(JSON.parse(text) as unknown[])])
  const failureRow = [eventId, time, outcome === null ? 0 : 1, errorClass, place.kind, place.name]
  return {
    failure: JSON.stringify(places.length === 0 ? failureRow : [...failureRow, places]),
    failureMessage: failure.message,
  }
}

/** The first question, or else the label of the first step, and the latest answer. */
function saidField(list: NewEvent[]): string {
  const byTime = list.toSorted((a, b) => a.time - b.time || (a.eventId < b.eventId ? -1 : 1))
  const asked = byTime.find(({ said }) => said?.question)
  const first = asked ?? byTime[0]!
  const answer = byTime.findLast(({ said }) => said?.answer)
  const title = [first.time, first.eventId, asked?.said?.question ?? first.label]
  const row = [asked === undefined ? 0 : 1, title]
  return JSON.stringify(answer === undefined ? row : [...row, [answer.time, answer.eventId, answer.said?.answer]])
}

/** Sorts traits, which are stored in the order of arrival. */
const inOrder = (traits: string | null) => (traits?.match(/.+\n/g) ?? []).toSorted().join('')

const sorted = <Row extends object>(rows: Row[]) =>
  rows.map((row) => Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1))).toSorted(byText)
const byText = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

export function propertySuite(open: OpenStorage) {
  describe('in any order', () => {
    const storage = sharedStorage(open)

    async function stored(environmentId: string) {
      const runs = (await storage().listRuns(environmentId, {}, { limit: 100, after: null })).rows
      const hours = (await storage().readUsage(environmentId, 0, 2 * NOON, { limit: 1_000, after: null })).rows
      const withoutIds = ({ id: _id, agentId: _agent, traits, uncosted, ...run }: RunRow) => {
        return { ...run, traits: inOrder(traits), uncosted: summed(readUncosted(uncosted)) }
      }
      const withoutKeys = ({ agentId: _, modelKey: __, uncosted, ...hour }: UsageHourRow) => {
        return { ...hour, uncosted: inAnyOrder(uncosted) }
      }
      const results = await storage().readVersionResults(environmentId, VERSIONS, 100)
      const versions = results.map((result) => result && { events: result.events, uncosted: summed(result.uncosted) })
      return { runs: runs.map(withoutIds), hours: hours.map(withoutKeys), versions }
    }

    test('the same events give the same runs, usage and rollup, however repeated and batched', async () => {
      await fc.assert(
        fc.asyncProperty(deliveries, fc.boolean(), async ({ sent, order, cuts }, atOnce) => {
          const environmentId = newId()
          const batches = batchesOf(sent, order, cuts)
          const send = (batch: NewEvent[]) => append(storage(), environmentId, ...batch)
          if (atOnce) await Promise.all(batches.map(send))
          else for (const batch of batches) await send(batch)
          const got = await stored(environmentId)
          const want = expected(sent)
          assert.deepEqual(sorted(got.runs), sorted(want.runs))
          assert.deepEqual(sorted(got.hours), sorted(want.hours))
          assert.deepEqual(got.versions, want.versions)
        }),
        { numRuns: 60 },
      )
    })
  })
}
