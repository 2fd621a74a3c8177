/** The ways in which a model's stream can end, for every integration. docs/integrations/streams.md is made of the results. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { hostRuntime } from '../../../sdk/src/delivery/runtime.ts'
import type { Answer } from '../../src/model-server.ts'
import { openStage, type Stage } from './matrix.ts'

/** The stream that a host gets from a framework. */
export interface HostStream {
  readonly items: AsyncIterable<unknown>
  /** Two streams of the same items. */
  tee?(): readonly [AsyncIterable<unknown>, AsyncIterable<unknown>]
  /** The same items as a web stream, for `pipeTo`. */
  web?(): ReadableStream<unknown>
}

export interface Streaming {
  readonly name: string
  /** Calls the recorded model, which answers with a stream. */
  open(stage: Stage, signal: AbortSignal): HostStream | Promise<HostStream>
  /** Whether the framework hides errors from the host. */
  readonly isSilent?: boolean
}

const TEXT = 'A long answer of which only half may come.'.repeat(3)

type Outcome = 'COMPLETED' | 'FAILED' | 'CANCELLED'

interface Way {
  readonly answer: Answer
  act(stream: HostStream, caller: AbortController): unknown
  /** `run`: outcome of the run around the stream. `own`: outcome of a call outside any run. */
  readonly run: Outcome
  readonly own: Outcome
  /** How much of the text is recorded. */
  readonly text: 'whole' | 'half' | 'none'
  readonly reason: 'stop' | 'aborted' | 'error'
}

export const WAYS: Readonly<Record<string, Way>> = {
  'read to the end': {
    answer: {},
    act: ({ items }) => readAll(items),
    run: 'COMPLETED',
    own: 'COMPLETED',
    text: 'whole',
    reason: 'stop',
  },
  left: {
    answer: { half: 'open' },
    act: ({ items }) => readSome(items),
    run: 'COMPLETED',
    own: 'CANCELLED',
    text: 'half',
    reason: 'aborted',
  },
  aborted: {
    answer: { half: 'open' },
    act: ({ items }, caller) => readSome(items, () => caller.abort()),
    run: 'CANCELLED',
    own: 'CANCELLED',
    text: 'half',
    reason: 'aborted',
  },
  broken: {
    answer: { half: 'cut' },
    act: ({ items }) => readAll(items),
    run: 'FAILED',
    own: 'FAILED',
    text: 'half',
    reason: 'error',
  },
  'an error inside': {
    answer: { half: 'error' },
    act: ({ items }) => readAll(items),
    run: 'FAILED',
    own: 'FAILED',
    text: 'half',
    reason: 'error',
  },
  teed: {
    answer: {},
    act: ({ tee }) => tee && Promise.all(tee().map(readAll)),
    run: 'COMPLETED',
    own: 'COMPLETED',
    text: 'whole',
    reason: 'stop',
  },
  piped: {
    answer: {},
    act: ({ web }) => web?.().pipeTo(new WritableStream()),
    run: 'COMPLETED',
    own: 'COMPLETED',
    text: 'whole',
    reason: 'stop',
  },
  'never read': {
    answer: { half: 'open' },
    act: () => undefined,
    run: 'COMPLETED',
    own: 'CANCELLED',
    text: 'none',
    reason: 'aborted',
  },
}

async function readAll(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

/** Reads the first pieces, then stops. With `then`, calls it and reads on. */
async function readSome(items: AsyncIterable<unknown>, then?: () => void): Promise<void> {
  let count = 0
  for await (const _ of items) {
    if (++count < 8) continue
    if (!then) break
    then()
  }
}

export function testStreams({ name, open, isSilent = false }: Streaming): void {
  for (const [title, way] of Object.entries(WAYS)) {
    test(`${name}, a stream, ${title}`, async (t) => {
      await check(t, title, way, true)
      if (title !== 'never read') await check(t, title, way, false)
    })
  }

  async function check(t: TestContext, title: string, way: Way, isInside: boolean): Promise<void> {
    t.mock.restoreAll()
    const { now, timer } = hostRuntime
    t.mock.method(hostRuntime, 'timer', (ms: number, act: () => void, hold?: boolean) =>
      timer(ms === 30_000 && !hold ? 20 : ms, act, hold),
    )
    const stage = await openStage(t, [{ text: TEXT, ...way.answer }])
    const caller = new AbortController()
    const act = async () => {
      const stream = await open(stage, caller.signal)
      await way.act(stream, caller)
    }
    const acted = await (isInside ? stage.tacho.run(act) : act()).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    if (!isSilent && way.reason === 'error') assert.ok(acted, 'the host gets the error')
    const hasEnded = async () => (await stage.fake.events()).some(({ eventType }) => eventType === 'SESSION_OUTCOME')
    for (let tries = 0; tries < 15 && !(await hasEnded()); tries++) await delay(100)
    // If the call has not ended, move the clock eleven minutes ahead.
    if (!(await hasEnded())) t.mock.method(hostRuntime, 'now', () => now() + 11 * 60_000)
    for (let tries = 0; tries < 15 && !(await hasEnded()); tries++) await delay(100)
    const calls = (await stage.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
    const [call, ...more] = calls
    const content = (call?.payload['output'] as { content?: string } | undefined)?.content ?? ''
    const [run, ...others] = await stage.fake.runs()
    // The result of the host's own function decides the outcome of the run around the stream.
    const expected = !isInside ? way.own : title === 'aborted' && !acted ? 'COMPLETED' : way.run
    // Frameworks read ahead.
    const isAhead = title === 'never read' && content !== ''
    assert.deepEqual(
      {
        run: run?.status,
        calls: calls.length,
        runs: 1 + others.length,
        reason: call?.payload['error'] === undefined ? said(call?.payload['finishReason']) : 'error',
        text: content === TEXT ? 'whole' : content === '' ? 'none' : TEXT.startsWith(content) ? 'half' : content,
        more: more.length,
        last: run?.events.at(-1)?.eventType,
      },
      {
        run: title === 'never read' && run?.status === 'CANCELLED' ? 'CANCELLED' : expected,
        calls: 1,
        runs: 1,
        reason: way.reason,
        text: isAhead ? 'half' : way.text,
        more: 0,
        last: 'SESSION_OUTCOME',
      },
    )
  }
}

/** Translates the finish reasons of the providers. */
function said(reason: unknown): unknown {
  return reason === 'completed' || reason === 'end_turn' ? 'stop' : reason
}

/** What each way means for a host. Both languages have the same rows. */
export const MEANINGS: Readonly<Record<keyof typeof WAYS, string>> = {
  'read to the end': 'The whole answer, with the reason of the provider.',
  left: 'The text that had come, `finishReason` `aborted`, and no error. A call outside a run is CANCELLED; a run ends as its function does.',
  aborted: 'The same, by a signal or a cancelled task. A run is CANCELLED if its framework throws.',
  broken:
    'The text that had come, and the error. The run is FAILED, also if the framework keeps the error from the host.',
  'an error inside': 'The same, for an error that the provider sends in the stream.',
  teed: 'One call, whole.',
  piped: 'One call, whole.',
  'never read': 'One call, `aborted`: when its run ends, after 30 seconds without a reader, or when the process ends.',
}
