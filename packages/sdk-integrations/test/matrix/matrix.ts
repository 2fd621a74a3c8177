/**
 * Every integration promises this for every way of defining a tool: the input that the tool gets is the input that policies
 * judge, and that is hashed, approved and recorded. A blocked or rejected call does not run, and a person is asked once. An
 * integration is a table of ways. Its test writes a file in `results`; docs/integrations/guarded.md is generated from these.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { fakeTacho, type FakeOptions, type FakeTacho } from '@tacho/sdk/testing'
import { hostRuntime } from '../../../sdk/src/delivery/runtime.ts'
import { inTurn, startModelServer, type Answer, type ModelServer } from '../../src/model-server.ts'

// A slow machine must not count as a late start.
hostRuntime.lateStartMs = Infinity

export const TOOL = 'act'

export interface Stage {
  readonly fake: FakeTacho
  readonly tacho: FakeTacho['tacho']
  readonly model: ModelServer
  /** The tool's own code. It keeps its input as JSON. */
  act(input: unknown): string
  readonly gotten: readonly unknown[]
}

type Start = (stage: Stage) => unknown

/** A way in which the tool is guarded. */
export interface Guarded {
  /** Inputs that the model sends: one call, or several at once. */
  readonly sent: readonly unknown[]
  /** Inputs that the tool gets, as JSON. */
  readonly got: readonly unknown[]
  /** Defines the tool and runs the agent. */
  readonly start: Start
  /** Name of the tool in events, if it is not TOOL. */
  readonly name?: string
  /** How often the tool is called with each input, if its first calls fail. */
  readonly calls?: number
  /** Answers of the model. Default: the calls, then a text. */
  readonly answers?: readonly Answer[]
}

/** A way that the wrapper refuses: it throws. With `unguarded: 'allow'`, it passes the tool on and reports it. */
export interface Refused {
  readonly refuse: (stage: Stage, options?: { unguarded: 'allow' }) => unknown
}

/** A way that cannot be guarded inside the process. `cannot` is the reason. */
export interface Cannot {
  readonly cannot: string
}

/** A row with tests of its own (life.ts). */
export interface Shown {
  /** Declares the tests. */
  show(title: string): void
}

export type Way = Guarded | Refused | Cannot | Shown

export interface Integration {
  /** Name of the integration's file in `results`. */
  readonly id: string
  readonly name: string
  /** Page in docs/integrations. */
  readonly page: string
  readonly tested: string
  readonly ways: Readonly<Record<string, Way>>
  /** Tools that the framework runs itself, so that they cannot be guarded inside the process. */
  readonly outside: readonly string[]
}

/** A way with one call. `got`: the input of the tool, if it differs from `sent`. */
export function one(start: Start, sent: unknown = { order: 7 }, got: unknown = sent): Guarded {
  return { sent: [sent], got: [got], start }
}

/** The first call of a tool fails, and the model calls it again, even after a rejection. */
export function retried(start: (stage: Stage) => unknown): Guarded {
  const call = { toolCalls: [{ name: TOOL, input: { order: 7 } }] }
  const failing = (stage: Stage): Stage => {
    let failures = 1
    const act = (input: unknown): string => {
      if (failures-- > 0) throw new Error('busy')
      return stage.act(input)
    }
    return { ...stage, act }
  }
  return { ...one((stage) => start(failing(stage))), calls: 2, answers: [call, call, { text: 'Done.' }] }
}

/** Declares the tests of an integration. */
export function testMatrix({ id, name, page, tested, ways, outside }: Integration): void {
  for (const [way, given] of Object.entries(ways)) {
    if ('sent' in given) testGuarded(`${name}, ${way}`, given)
    if ('refuse' in given) testRefused(`${name}, ${way}`, given)
    if ('show' in given) given.show(`${name}, ${way}`)
  }

  test(`${name}: its results are those that the documentation prints`, () => {
    const known = JSON.parse(readFileSync(new URL('ways.json', RESULTS), 'utf8')) as object
    assert.deepEqual(
      Object.keys(ways).filter((way) => !Object.hasOwn(known, way)),
      [],
    )
    const results = Object.fromEntries(
      Object.keys(known).flatMap((way) => {
        const given = Object.hasOwn(ways, way) ? ways[way] : undefined
        if (!given) return []
        return [[way, 'refuse' in given ? 'refused' : 'cannot' in given ? given : 'guarded']]
      }),
    )
    keepResults(id, { language: 'TypeScript', integration: name, page, tested, ways: results, outside })
  })
}

export function keepResults(id: string, results: object): void {
  const text = `${JSON.stringify(results, null, 2)}\n`
  const file = new URL(`${id}.json`, RESULTS)
  if (process.env['UPDATE_DOCS']) writeFileSync(file, text)
  assert.equal(readFileSync(file, 'utf8'), text, 'stale: run UPDATE_DOCS=1 npm test -- sdk-integrations/test/matrix')
}

/** Opens a stage, which closes after the test. @param answers of the model, in turn; the last one repeats */
export async function openStage(t: TestContext, answers: readonly Answer[], options: FakeOptions = {}): Promise<Stage> {
  const model = await startModelServer(inTurn(...answers))
  const fake = fakeTacho({ agentName: 'Matrix', capture: 'full', ...options })
  t.after(async () => {
    await fake.close()
    await model.close()
  })
  await fake.tacho.configuration.ready()
  const gotten: unknown[] = []
  const act = (input: unknown): string => {
    const json = JSON.parse(JSON.stringify(input)) as unknown
    // Policies read an input that is a text as `tool.input.input`.
    gotten.push(typeof json === 'object' && json !== null && !Array.isArray(json) ? json : { input: json })
    return 'acted'
  }
  return { fake, tacho: fake.tacho, model, act, gotten }
}

export function policyFor(toolName: string, condition: string, action: 'BLOCK' | 'REQUIRE_APPROVAL') {
  return {
    policyId: 'p',
    name: 'p',
    version: '1',
    condition: `tool.name == ${JSON.stringify(toolName)} && (${condition})`,
    severity: 'MEDIUM' as const,
    action,
  }
}

export const RESULTS = new URL('../../results/', import.meta.url)

function testGuarded(title: string, { sent, got, start, name = TOOL, calls = 1, answers }: Guarded): void {
  const script = answers ?? [{ toolCalls: sent.map((input) => ({ name: TOOL, input })) }, { text: 'Done.' }]
  const expected = got.map((input) => ({ input, hash: inputHash(name, input) })).toSorted(byHash)
  const isGot = (got as { [key: string]: unknown }[]).map((input) => `tool.input == ${literal(input)}`).join(' || ')
  const play = async (t: TestContext, action: 'BLOCK' | 'REQUIRE_APPROVAL' | null, approvals: 'approve' | 'reject') => {
    // The policy matches only the input that the tool gets.
    const deployedPolicies = action === null ? [] : [policyFor(name, isGot, action)]
    const stage = await openStage(t, script, { deployedPolicies, approvals })
    const { fake, gotten } = stage
    await fake.tacho.run(() => start(stage))
    const events = await fake.events()
    const of = (type: string) =>
      events
        .filter(({ eventType, payload }) => eventType === type && payload['toolName'] === name)
        .map(({ payload }) => ({ input: payload['input'], hash: String(payload['inputHash']) }))
        .toSorted(byHash)
    const asked = (await fake.approvals()).map(({ inputHash: hash }) => hash).toSorted()
    return { gotten: gotten.toSorted(byText), calls: of('TOOL_CALL'), decisions: of('POLICY_DECISION'), asked }
  }
  const all = got.toSorted(byText)
  const hashes = expected.map(({ hash }) => hash)
  const perCall = <Item>(items: readonly Item[]) => items.flatMap((item) => Array.from({ length: calls }, () => item))

  test(title, async (t) => {
    const allowed = await play(t, null, 'reject')
    assert.deepEqual(allowed.gotten, all, 'the tool gets it')
    assert.deepEqual(allowed.calls, perCall(expected), 'recorded is what the tool got')

    const approved = await play(t, 'REQUIRE_APPROVAL', 'approve')
    assert.deepEqual(approved.asked, perCall(hashes), 'hashed is what the tool gets')
    assert.deepEqual(approved.decisions, perCall(expected), 'shown to the approver is what the tool gets')
    assert.deepEqual(approved.gotten, all, 'an approved call runs')
    assert.deepEqual(approved.calls, perCall(expected), 'recorded is what was approved')

    const rejected = await play(t, 'REQUIRE_APPROVAL', 'reject')
    assert.deepEqual(rejected.gotten, [], 'a rejected call does not run')
    assert.deepEqual(rejected.asked, hashes, 'and is asked once')

    const blocked = await play(t, 'BLOCK', 'approve')
    assert.deepEqual(blocked.gotten, [], 'a blocked call does not run')
    // Count each input once, because a model may repeat a call.
    const judged = [...new Map(blocked.decisions.map((decision) => [decision.hash, decision])).values()]
    assert.deepEqual(judged, expected, 'judged is what the tool would get')
    assert.deepEqual(blocked.calls, [])
  })
}

function testRefused(title: string, { refuse }: Refused): void {
  test(`${title}: refused`, async (t) => {
    const model = await startModelServer(() => ({ text: 'Done.' }))
    const warnings: string[] = []
    const fake = fakeTacho({ agentName: 'Matrix', onDiagnostic: ({ code }) => void warnings.push(code) })
    t.after(async () => {
      await fake.close()
      await model.close()
    })
    const stage: Stage = { fake, tacho: fake.tacho, model, act: () => assert.fail('ran unguarded'), gotten: [] }
    assert.throws(() => refuse(stage), TypeError)
    await fake.tacho.run(() => refuse(stage, { unguarded: 'allow' }))
    assert.deepEqual(warnings, ['unguarded_tool'])
    await fake.assertEvent('AGENT_STEP', { isGuarded: false })
  })
}

/** The value as a literal in a condition. Numbers in conditions are doubles. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : String(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${literal(item)}`)
  return `{${members.join(', ')}}`
}

function byHash(a: { hash: string }, b: { hash: string }): number {
  return a.hash.localeCompare(b.hash)
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a).localeCompare(JSON.stringify(b))
}
