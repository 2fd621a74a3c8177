/** Calls that a condition can skip: those with another value or of another tool. Results and steps stay the same. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCondition } from '../src/compile.ts'
import { compiled } from '../src/compiled.ts'
import { evaluate } from '../src/evaluate.ts'
import { Failure, OutOfSteps, Scope } from '../src/evaluation/value.ts'
import { placesOf } from '../src/evaluation/sought-calls.ts'
import { RunHistory, type HistoryCall } from '../src/history/run-history.ts'
import { preparedFor } from '../src/history/tool-labels.ts'
import { factReader } from '../src/input/facts.ts'
import { soughtInputOf, sizeOf, type NodeOf } from '../src/language/syntax.ts'

const LONG = 'order 12345678901234567890123456789'
const VALUES = ['a', 'b', LONG, LONG.slice(0, 31), 7, 0, -0, true, null, ['a'], { a: 1 }, undefined]
const TOOLS = ['pay', 'verify', 'a tool with a name of more than 31 characters']
const TOLD_APART = 'a.b'

const SOUGHT = [
  'run.calls.exists(c, c.tool == "pay" && c.ok && c.input.id == tool.input.id)',
  'run.calls.exists(c, c.input.id == tool.input.id)',
  'run.calls.exists(c, tool.input.id == c.input.id && c.tool.matches("^[pv]a*"))',
  'run.calls.exists(c, has(c.input) && (has(c.input.id) && c.input.id == tool.input.id) && !c.ok)',
  'run.calls.all(c, c.tool != "verify" || c.input.id != tool.input.id || c.ok)',
  'run.calls.all(c, c.input.id != tool.input.id || c.input.of.id == tool.input.of.id)',
  'run.calls.exists_one(c, "pay" == c.tool && c.input.of.id == tool.input.of.id)',
  'run.calls.filter(c, has(c.input) && has(c.input.id) && !c.ok && c.input.id == tool.input.of.id).size() > 5',
  'run.calls.filter(c, has(c.input) && has(c.input.`a.b`) && c.input.`a.b` == tool.input.id).size() > 20',
  'run.calls.filter(c, has(c.input) && has(c.input.a.b) && c.input.a.b == tool.input.id).size() > 20',
  'run.calls.exists(c, has(c.input) && has(c.input.id) && c.ok.none && c.input.id == tool.input.id)',
]
/** Conditions on fields that calls never lose, so they are evaluated once for each call. */
const SETTLED = [
  'run.calls.filter(c, !c.ok).size() > 40',
  'run.calls.exists(c, c.tool == "verify" && c.ok)',
  'run.calls.all(c, c.tool != "verify" || c.ok)',
  'run.calls.map(c, !c.ok, c.tool).size() > 40',
]
const NOT_SOUGHT = [
  'run.calls.exists(c, c.labels.exists(l, l == "x") && c.input.id == tool.input.id)',
  'run.calls.exists(c, c.tool == "a tool with a name of more than 31 characters" && c.input.id == tool.input.id)',
  'run.calls.exists(c, c.input.id == c.input.of.id)',
  'run.calls.exists(c, c.input.id != tool.input.id)',
  'run.calls.map(c, c.input.id == tool.input.id) == [true]',
  'tool.input.calls.exists(c, c.input.id == tool.input.id)',
  'run.calls.exists(c, c.decision == tool.input.id && c.input.id == tool.input.id)',
]

function conditionOf(source: string) {
  const compiled = compileCondition(source)
  assert.ok(compiled.ok, source)
  return compiled.condition
}

function loopIn(source: string): NodeOf<'method'> {
  const nodes = [conditionOf(source).root]
  for (const node of nodes) {
    if (node.kind === 'method' && node.values.length > 1) return node
    if (node.kind === 'binary') nodes.push(node.left, node.right)
    if (node.kind === 'method') nodes.push(node.receiver)
  }
  return assert.fail(source)
}

test('a loop seeks calls if nothing before the comparison costs a step', () => {
  for (const source of SOUGHT) assert.ok(soughtInputOf(loopIn(source)), source)
  for (const source of NOT_SOUGHT) assert.equal(soughtInputOf(loopIn(source)), undefined, source)
})

test('a loop that seeks calls finds what one over all calls finds, for the same steps', () => {
  // A loop inside another one evaluates every call.
  const pairs = [...SOUGHT, ...SETTLED].map((source) => {
    const [sought, walking] = [conditionOf(source), conditionOf(`[0].exists(z, ${source})`)]
    const ofPrepared = compiled(source)
    assert.ok(ofPrepared.ok)
    return { source, sought, walking, ofPrepared: ofPrepared.condition, more: sizeOf(sought.root) }
  })
  const seen = new Map<string, Set<unknown>>()
  const grown = new RunHistory()
  const prepared = new RunHistory()
  const prepare = preparedFor([...SOUGHT, ...SETTLED].map((condition) => ({ condition })))
  for (let number = 0; number < 1_150; number++) {
    const valueAt = (place: number) => VALUES[(number * place) % VALUES.length]
    const fields = { id: valueAt(5), of: { id: valueAt(7) }, a: { b: valueAt(1) }, [TOLD_APART]: valueAt(11) }
    const ended: HistoryCall = {
      tool: TOOLS[number % 7 === 0 ? 2 : number % 2] as string,
      // The history drops inputs long before it drops calls.
      input: number % 13 === 0 ? null : { ...fields, text: 'x'.repeat(number % 50 === 49 ? 20_000 : 10) },
      ok: number % 3 > 0,
      decision: 'ALLOW',
      does: [],
      labels: ['x'],
    }
    grown.ended(ended)
    prepared.ended(ended)
    prepare(prepared)
    if (number % 23 > 1) continue
    for (const value of VALUES) {
      const tool = { name: 'pay', input: { id: value, of: { id: value } } }
      for (const { source, sought, walking, ofPrepared, more } of pairs) {
        const [found, early, walked] = [sought, ofPrepared, walking].map((condition) => {
          const history = condition === ofPrepared ? prepared : grown
          const scope = new Scope(factReader({ tool, run: { history }, now: 0 }))
          try {
            const result = condition.run(scope)
            return { result: result instanceof Failure ? result.message : result, left: scope.left }
          } catch (error) {
            assert.ok(error instanceof OutOfSteps)
            return { result: 'out of steps', left: 0 }
          }
        })
        const of = `${number} ${JSON.stringify(value)}: ${source}`
        assert.equal(found?.result, walked?.result, of)
        assert.deepEqual(early, found, of)
        if (found?.result !== 'out of steps') assert.equal(found?.left, (walked?.left ?? 0) + more, of)
        seen.set(source, (seen.get(source) ?? new Set()).add(found?.result))
      }
    }
  }
  for (const source of [...SOUGHT, ...SETTLED])
    assert.ok((seen.get(source)?.size ?? 0) > 1, `${source} has several results`)
})

test('a condition of one tool is not evaluated for others, unless the name means the own name of the tool', () => {
  const run = (source: string, name: unknown) =>
    evaluate(conditionOf(source), { tool: { name: name as string }, now: 0 })
  const costly = 'tool.name == "pay" && "a".matches("a") && tool.name.split("").map(a, "x".split("").map(b, b)) != []'
  const long = 'x'.repeat(4_000_000)
  assert.deepEqual(run(costly, 'pay'), { ok: true, matched: true })
  assert.deepEqual(run(costly, 'refund'), { ok: true, matched: false })
  // The comparison of a very long name costs steps.
  assert.equal(run(costly, long).ok, false)
  assert.equal(run(costly, 5).ok, false)
  const own = 'tool.name == "drop" && tool.server == "db"'
  assert.deepEqual(run(own, 'mcp__db__drop'), { ok: true, matched: true })
  assert.deepEqual(run(own, 'mcp__db__read'), { ok: true, matched: false })
})

test('conditions that seek by the same path share what they know of the calls, and of a fifth path nothing is remembered', () => {
  let reads = 0
  class Read extends Map<string, string> {
    override get(key: string) {
      reads += 1
      return super.get(key)
    }
  }
  const calls = Array.from({ length: 100 }, (_, n) => new Map([['input', new Read([['a', `${n % 10}`]])]]))
  const seek = (...path: string[]) => placesOf({ path: ['input', ...path], value: () => '7' })
  const scope = new Scope(factReader({ tool: { name: 'pay', input: {} }, now: 0 }))
  const sevens = Array.from({ length: 10 }, (_, n) => n * 10 + 7)
  for (let condition = 0; condition < 3; condition++) assert.deepEqual(seek('a').of(calls, scope), sevens)
  assert.equal(reads, 100)
  for (const path of ['b', 'c', 'd']) assert.ok(seek(path).of(calls, scope), path)
  assert.equal(seek('e').of(calls, scope), undefined)
  assert.deepEqual(seek('a').of(calls, scope), sevens)
})

test('a prepared history answers a decision without a look at its calls', () => {
  const conditions = [...SOUGHT.slice(0, 5), ...SETTLED]
  const history = new RunHistory()
  const prepare = preparedFor(conditions.map((condition) => ({ condition })))
  for (let number = 0; number < 50; number++) {
    const input = { id: `i-${number}` }
    history.ended({ tool: 'pay', input, ok: number % 2 > 0, decision: 'ALLOW', does: [], labels: [] })
    prepare(history)
  }
  let reads = 0
  for (const call of history.calls as Map<string, unknown>[]) {
    const read = call.get.bind(call)
    call.get = (key: string) => (reads++, read(key))
  }
  const facts = { tool: { name: 'pay', input: { id: 'i-50' } }, run: { history }, now: 0 }
  for (const source of conditions) {
    const ofSource = compiled(source)
    assert.ok(ofSource.ok && evaluate(ofSource.condition, facts).ok, source)
  }
  assert.equal(reads, 0)
})

test('a loop that runs out of steps is walked once, not again after each call', () => {
  const others = Array.from({ length: 150 }, (_, n) => `c.tool != "t${n}"`)
  const condition = `run.calls.exists(c, ${others.join(' && ')} && !c.ok)`
  const prepare = preparedFor([{ condition }])
  const [prepared, plain] = [new RunHistory(), new RunHistory()]
  for (let number = 0; number < 900; number++) {
    for (const history of [prepared, plain]) {
      history.ended({ tool: 'pay', input: {}, ok: true, decision: 'ALLOW', does: [], labels: [] })
    }
  }
  // The policy is deployed during the run, and the earlier calls need more steps than a decision has.
  prepare(prepared)
  const ofSource = compiled(condition)
  assert.ok(ofSource.ok)
  const decide = (history: RunHistory) =>
    evaluate(ofSource.condition, { tool: { name: 'pay' }, run: { history }, now: 0 })
  const walked = decide(plain)
  assert.ok(!walked.ok)
  for (const call of prepared.calls as Map<string, unknown>[]) call.get = () => assert.fail('walked again')
  assert.deepEqual(decide(prepared), walked)
})
