/** Replays: with TACHO_REPLAY, a process asks that host instead of running guarded tools. All SDKs use the same tape. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { Called, Rule, Subject } from '../rule.ts'
import { hangUp, json, type Answer } from '../scripted-service.ts'

/** The steps of the tape that are tools. */
const TAPE = [
  { tool: 'get_order', input: { order: 1 }, output: { paid: 30, note: null } },
  { tool: 'refund', input: { order: 1, amount: 30 }, error: { name: 'TypeError', message: 'No such order' } },
  { tool: 'notify', input: { to: 'Ada' }, output: 'sent' },
] as const

type Asked = Pick<(typeof TAPE)[number], 'tool'> & { input: object }

const text = ({ tool, input }: Asked): string => `${tool} ${JSON.stringify(input)}`

/** Answers step by step. After the first difference, every answer is `stop`. */
function tape(): Answer {
  let at = 0
  let stopped: string | undefined
  return (response, request) => {
    const { toolName, input } = request.json as { toolName: string; input: object }
    const step = TAPE[at]
    const asked = { tool: toolName, input } as Asked
    if (!step || text(step) !== text(asked))
      stopped ??= `step ${at + 1}: the tape has ${step ? text(step) : 'ended'}, the agent asks ${text(asked)}`
    at++
    const { output, error } = { output: undefined, error: undefined, ...step }
    if (stopped !== undefined) return json(200, { answer: 'stop', message: stopped })(response, request)
    const answer = error ? { answer: 'failed', error } : { answer: 'returned', output }
    return json(200, answer)(response, request)
  }
}

/** The answer of a replay's host to a step. */
function step(tapeStep: (typeof TAPE)[number], number: number) {
  const { tool, input, output, error } = { output: undefined, error: undefined, ...tapeStep }
  const answer = error ? { answer: 'failed', error } : { answer: 'returned', output }
  const sorted = Object.fromEntries(Object.entries(input).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return { ...answer, step: number, inputHash: hash('sha256', JSON.stringify(['tacho-input-1', tool, sorted])) }
}

/** Makes these calls. Returns what the agent sees: outputs, and messages of errors. */
async function play({ service, call, refresh }: Subject, asked: readonly Asked[], answers: Answer): Promise<unknown[]> {
  service.script('tool-calls', answers)
  await refresh()
  const seen: unknown[] = []
  for (const [number, { tool, input }] of asked.entries()) {
    const guardedCall = { callId: `call-${number}`, toolName: tool, input, approvalTimeoutMs: 30_000 }
    const failed = (reason: unknown): Called => ({ ran: false, output: String(reason) })
    const { ran, output } = await call(guardedCall).catch(failed)
    assert.equal(ran, false, `${tool} ran`)
    seen.push(output)
  }
  return seen
}

/** @param change changes the calls of the tape's agent */
function differs(name: string, title: string, change: (asked: Asked[]) => void, expected: string): Rule {
  return {
    id: `replay/${name}`,
    title,
    isReplay: true,
    async run(subject) {
      const asked = TAPE.map(({ tool, input }): Asked => ({ tool, input: { ...input } }))
      change(asked)
      const seen = await play(subject, asked, tape())
      const first = seen.find((one) => typeof one === 'string' && one.includes('the tape has'))
      assert.ok(String(first).includes(expected), `the first difference is ${String(first)}, not ${expected}`)
    },
  }
}

export const replayRules: Rule[] = [
  {
    id: 'replay/answered',
    title: 'Guarded calls get the outputs and errors of the tape; no tool runs, and nothing is sent elsewhere',
    isReplay: true,
    async run(subject) {
      const [order, refund, notice] = await play(subject, TAPE, tape())
      assert.deepEqual([order, notice], [{ paid: 30, note: null }, 'sent'])
      assert.match(String(refund), /No such order/)
      await subject.record()
      await subject.flush()
      assert.ok(subject.service.requests('events').length > 0, 'events did not come to the address of the tape')
      assert.equal(subject.elsewhere(), 0, 'the configured address got requests')
    },
  },
  differs(
    'changed-input',
    'A changed input is the first difference',
    ([, refund]) => Object.assign(refund?.input ?? {}, { amount: 31 }),
    'step 2: the tape has refund {"order":1,"amount":30}, the agent asks refund {"order":1,"amount":31}',
  ),
  differs(
    'changed-order',
    'A changed order of tools is the first difference',
    (asked) => asked.reverse(),
    'step 1: the tape has get_order {"order":1}, the agent asks notify {"to":"Ada"}',
  ),
  differs(
    'one-more',
    'A call after the end of the tape is the first difference',
    (asked) => asked.push({ tool: 'notify', input: { to: 'Bob' } }),
    'step 4: the tape has ended, the agent asks notify {"to":"Bob"}',
  ),
  {
    id: 'replay/ahead',
    title:
      'Answers in advance are used by equal calls in their order; a call that differs is asked for, with the last step that was used',
    isReplay: true,
    async run(subject) {
      const [order, refund, notice] = TAPE
      const first = step(order, 1)
      const stop = json(200, { answer: 'stop', message: 'step 3: the tape has something else' })
      const ahead = [step(refund, 2), step(notice, 3)]
      const other = { tool: 'notify', input: { to: 'Bob' } } as const
      const seen = await play(subject, [order, refund, other], (response, request) => {
        const { toolName, client } = request.json as { toolName: string; client?: string }
        // Some SDKs do not accept answers to later steps in advance.
        if (toolName === 'refund') return json(200, step(refund, 2))(response, request)
        if (toolName === 'notify') return stop(response, request)
        return json(200, client === undefined ? first : { ...first, ahead })(response, request)
      })
      assert.deepEqual(seen[0], order.output)
      assert.match(String(seen[1]), /No such order/)
      assert.match(String(seen[2]), /step 3/)
      const asked = subject.service
        .requests('tool-calls')
        .map(({ json: body }) => body as { client?: string; used?: number })
      if (asked[0]?.client === undefined) return
      assert.deepEqual(
        [asked.length, asked.at(-1)?.used],
        [2, 2],
        'requests, and the step of the last answer that was used',
      )
    },
  },
  {
    id: 'replay/no-answer',
    title: 'Without an answer of the tape, a tool does not run',
    isReplay: true,
    run: async (subject) => void (await play(subject, TAPE.slice(0, 1), hangUp)),
  },
]
