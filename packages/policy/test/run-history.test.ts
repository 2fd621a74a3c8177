/** Values that a history finds, values that it does not find, and its limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCondition } from '../src/compile.ts'
import { evaluate } from '../src/evaluate.ts'
import { OutOfSteps, Scope } from '../src/evaluation/value.ts'
import { RunHistory, type HistoryCall } from '../src/history/run-history.ts'
import { labelsOfCall, readHistory } from '../src/history/tool-labels.ts'
import { factReader } from '../src/input/facts.ts'
import { TEXT_CHARS } from '../src/history/words.ts'

const call = (facts: Partial<HistoryCall> = {}): HistoryCall => ({
  tool: 'read',
  input: {},
  ok: true,
  decision: 'ALLOW',
  does: [],
  labels: ['untrusted'],
  ...facts,
})

function reading(output: unknown): RunHistory {
  const history = new RunHistory()
  history.ended(call({ output }))
  return history
}

test('a value is found in another spelling', () => {
  for (const [output, value] of [
    ['mail mallory@evil.example, now', 'Mallory@Evil.Example'],
    ['mailto:mallory%40evil.example', 'mallory@evil.example'],
    ['mallory&#64;evil&#x2e;example', 'mallory@evil.example'],
    ['mallory [at] evil (dot) example', 'mallory@evil.example'],
    [Buffer.from('send it to mallory@evil.example').toString('base64'), 'mallory@evil.example'],
    [Buffer.from('account 12345678').toString('hex'), '12345678'],
    ['m\u00adallory@\u200bevil.example', 'mallory@evil.example'],
    ['ｍａｌｌｏｒｙ＠ｅｖｉｌ．ｅｘａｍｐｌｅ', 'mallory@evil.example'],
    ['IBAN GB33 BUKB 2020 1555 5555 55', 'GB33BUKB20201555555555'],
    ['IBAN GB33BUKB20201555555555', 'GB33-BUKB-2020-1555-5555-55'],
    ['call +1 (555) 123-4567', '15551234567'],
    ['total: $1,200.50', 1200.5],
    [{ total: 1200.5 }, '1200.50'],
    [{ 'A-74932': { name: 'road bike' } }, 'a-74932'],
    ['{"to":"a\\u0040b.example"}', 'a@b.example'],
  ] as const) {
    assert.deepEqual(reading(output).origin(value), ['untrusted'], `${JSON.stringify(output)} ${value}`)
  }
})

test('an output of white space is read as fast as others: a stranger could stop the host with it for minutes', () => {
  const output = `mallory (at) evil [dot] example (${' '.repeat(TEXT_CHARS - 100)}( bob`
  assert.deepEqual(reading(output).origin('mallory@evil.example'), ['untrusted'])
})

test('a long output is read in other turns of the loop, or before a value is looked up', () => {
  const waiting: (() => void)[] = []
  const long = `${'word '.repeat(20_000)} mallory@evil.example`
  const history = new RunHistory((act) => waiting.push(act))
  history.ended(call({ output: 'bob@example.com' }))
  assert.equal(waiting.length, 0, 'a short one is read at once')
  history.ended(call({ output: { long } }))
  history.ended(call({ output: ['alice@example.com'], labels: ['private'] }))
  assert.equal(waiting.length, 1)
  assert.deepEqual(history.origin('mallory@evil.example'), ['untrusted'])
  assert.deepEqual(history.origin('alice@example.com'), ['private'])
  for (const act of waiting.splice(0)) act()
  assert.equal(waiting.length, 0, 'nothing is left to read')
  // Reading one part schedules the next one, until the whole text is read.
  history.ended(call({ output: long }))
  let parts = 0
  for (let act = waiting.shift(); act; act = waiting.shift()) if (++parts > 1_000) assert.fail('it never ends')
  assert.ok(parts > 0)
  // Outputs of up to 1,048,576 characters wait to be read. With one more character, all are read at once.
  for (const [outputs, rest] of [
    [10, 1],
    [11, 0],
  ] as const) {
    const many = new RunHistory((act) => waiting.push(act))
    for (let n = 0; n < outputs; n++) many.ended(call({ output: long }))
    waiting.shift()?.()
    assert.equal(waiting.splice(0).length, rest, `${outputs} outputs`)
  }
})

test('words of the user in an encoded part of a value say nothing of the whole', () => {
  const history = reading([{ name: 'Power company' }])
  history.said('Pay the bill')
  for (const word of ['the', 'name', 'Power company']) {
    const padded = Buffer.from(`      ${word}      `)
    for (const encoded of [padded.toString('base64url'), padded.toString('hex')]) {
      for (const value of [`https://evil.example/?${encoded}`, `mallory.${encoded}@evil.example`, encoded])
        assert.deepEqual(history.origin(value), [], value)
    }
  }
})

test('a value that was not there is not found', () => {
  const history = reading([
    'mallory@evil.example',
    'account 12345678',
    'Bob Smith',
    1200.5,
    true,
    null,
    'x5000 01 bank1 example',
  ])
  for (const value of [
    'mallory@good.example',
    'evil@mallory.example',
    '1234567',
    '2345678',
    'Smith Bob',
    // Separate words and numbers, not one number in groups of digits.
    'x500001@bank1.example',
    1200,
    '',
    '@',
  ]) {
    assert.deepEqual(history.origin(value), [], String(value))
  }
})

test('a text of the longest length is read whole, and of a longer one the end is unknown', () => {
  const end = ' mallory@evil.example'
  const longest = 'x'.repeat(TEXT_CHARS - end.length) + end
  assert.deepEqual(reading(longest).origin('mallory@evil.example'), ['untrusted'])
  assert.deepEqual(reading(`x${longest}`).origin('bob@evil.example'), ['unknown'])
})

test('each two neighbours of a long text are found, and of too many the rest is unknown', () => {
  const history = new RunHistory()
  const words = Array.from({ length: 9_000 }, (_, number) => `word${number}`)
  // A text with other characters, and an ASCII text.
  for (const text of [words.map((word) => `${word}é`), words]) {
    history.ended(call({ output: text.join(' ') }))
    for (const [at, first] of text.slice(0, -1).entries())
      assert.deepEqual(history.origin(`${first}, ${text[at + 1]}`), ['untrusted'])
    // About one in 100,000 has by chance the hash of another one.
    const missing = text.slice(0, 180).filter((first, at) => history.origin(`${first} ${text[at + 2]}`).length === 0)
    assert.ok(missing.length > 175)
  }
  // 9,000 numbers, and 18,000 words and pairs of each text.
  for (let turn = 0; turn < 4; turn++) {
    assert.ok(!history.origin('none').includes('unknown'), String(turn))
    history.ended(call({ output: words.map((word) => `turn${turn}${word}`).join(' ') }))
  }
  assert.ok(history.origin('none').includes('unknown'))
  assert.deepEqual(history.origin('word1 word2'), ['unknown', 'untrusted'])
})

test('what no model can read makes the history unknown: a cycle, a function that throws', () => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  const throwing = { toJSON: () => assert.fail('read') }
  for (const output of [cycle, throwing, 1n]) assert.deepEqual(reading(output).origin('x'), ['unknown'])
})

test('the newest 1,000 calls are kept, and inputs of 131,072 characters', () => {
  const history = new RunHistory()
  for (let number = 0; number < 1_001; number++) {
    history.ended(call({ tool: `t${number % 2}`, input: { number, text: 'x'.repeat(1_000) } }))
  }
  const calls = history.calls as ReadonlyMap<string, unknown>[]
  assert.equal(calls.length, 1_000)
  assert.equal(history.callsOf('t0').length + history.callsOf('t1').length, 1_000)
  assert.equal(calls[0]?.get('tool'), 't1')
  const kept = calls.filter((one) => one.has('input')).length
  assert.ok(kept > 120 && kept <= 131, `${kept} inputs`)
  assert.ok(calls.at(-1)?.has('input') && !calls[0]?.has('input'))
})

test('more than 14 labels of outputs cannot be told apart, and the history says so', () => {
  const history = new RunHistory()
  for (let number = 0; number < 14; number++) history.ended(call({ labels: [`l${number}`], output: `value-${number}` }))
  assert.deepEqual(history.origin('value-13'), ['l13'])
  history.ended(call({ labels: ['l14'], output: 'value-14' }))
  assert.deepEqual(history.origin('value-14'), ['unknown'])
  assert.equal(history.labels.length, 15)
})

test('more than 255 sets of labels cannot be told apart, and the history says so', () => {
  const history = new RunHistory()
  const names = Array.from({ length: 9 }, (_, bit) => `l${bit}`)
  for (let set = 1; set < 256; set++) {
    if (set === 255) assert.deepEqual(history.origin('word254'), names.slice(1, 8))
    const labels = names.filter((_, bit) => (set & (1 << bit)) !== 0)
    history.ended(call({ labels, output: `word${set}` }))
  }
  assert.deepEqual(history.origin('word255'), names.slice(0, 8))
  assert.deepEqual(history.origin('word1'), ['l0'])
  history.ended(call({ labels: ['l8'], output: 'late' }))
  assert.deepEqual(history.origin('late'), ['unknown'])
  assert.deepEqual(history.origin('word1'), ['l0', 'unknown'])
})

test('words of Object.prototype are ordinary words, labels and tools', () => {
  const history = new RunHistory()
  const words = ['constructor', '__proto__', 'toString', 'hasOwnProperty']
  assert.deepEqual(
    words.map((word) => history.origin(word)),
    [[], [], [], []],
  )
  for (const word of words) history.ended(call({ tool: word, labels: [word], output: { [word]: word } }))
  assert.deepEqual(
    words.map((word) => history.origin(word)),
    words.map((word) => [word]),
  )
  assert.deepEqual(
    words.map((word) => history.callsOf(word).length),
    [1, 1, 1, 1],
  )
  assert.deepEqual(history.callsOf('valueOf'), [])
})

test('a loop over the calls of one tool looks only at them, and means the same', () => {
  const history = new RunHistory()
  for (let number = 0; number < 1_000; number++) history.ended(call({ tool: number === 500 ? 'verify' : 'read' }))
  const matched = (source: string) => {
    const compiled = compileCondition(source)
    assert.ok(compiled.ok, source)
    return evaluate(compiled.condition, { tool: { name: 'pay' }, run: { history }, now: 0 })
  }
  // Each condition would run out of steps if it evaluated all calls.
  const costly = 'c.labels.exists(l, l.matches("^(a|b|c)*untrusted$") && l.lowerAscii().trim().split("").size() == 9)'
  for (const [source, expected] of [
    [`run.calls.exists(c, c.tool == "verify" && ${costly})`, true],
    [`run.calls.exists(c, ${costly} && "verify" == c.tool)`, true],
    [`run.calls.exists_one(c, c.ok && c.tool == "verify" && ${costly})`, true],
    [`run.calls.all(c, c.tool != "verify" || ${costly})`, true],
    [`run.calls.filter(c, c.tool == "verify" && ${costly}).size() == 1`, true],
    [`run.calls.exists(c, c.tool == "missing" && ${costly})`, false],
  ] as const) {
    assert.deepEqual(matched(source), { ok: true, matched: expected }, source)
  }
})

test('a loop that judges each call once finds what one over all calls finds, for the same steps', () => {
  const costly = 'c.labels.exists(l, l.matches("^(a|b|c)*untrusted$") && l.lowerAscii().trim().split("").size() == 9)'
  const conditions = [
    'run.calls.exists(c, c.tool == "verify" && c.ok)',
    'run.calls.exists(c, c.tool == "none" && c.ok)',
    'run.calls.all(c, c.tool != "verify" || c.ok)',
    'run.calls.filter(c, !c.ok).size() in [0, 3, 250]',
    'run.calls.map(c, c.decision == "WARN", c.tool) == []',
    'run.calls.filter(c, c.ok && c.labels[2] == "x") == []',
    'run.calls.exists(c, c.labels[1] == "x" || c.decision == "BLOCK")',
    'run.calls.all(c, c.labels[1] == "x" || c.ok)',
    'run.calls.exists(c, has(c.input) && c.input.id == 7.0)',
    'run.calls.all(c, c.input.id >= 0.0)',
    'run.calls.exists(c, size(c) < 5)',
    'run.calls.exists_one(c, c.tool == "verify" && !c.ok)',
    'run.calls.exists(c, c.tool == "read" && c.ok && run.toolCalls > 3)',
    'run.calls.exists(c, !c.ok && c.labels.exists(l, l in run.labels))',
    `run.calls.exists(c, c.tool == "read" && !c.ok && ${costly})`,
    `run.calls.all(c, c.ok || ${costly})`,
  ].map((source) => {
    const compiled = compileCondition(source)
    assert.ok(compiled.ok, source)
    return compiled.condition
  })
  const ended: HistoryCall[] = []
  const grown = new RunHistory()
  for (let number = 0; number < 1_150; number++) {
    const input = { id: number, text: 'x'.repeat(number % 50 === 49 ? 20_000 : 10) }
    const tool = number % 40 === 11 ? 'verify' : 'read'
    ended.push(call({ tool, input, ok: number % 9 > 1, decision: number % 30 === 3 ? 'WARN' : 'ALLOW', output: 'o' }))
    grown.ended(ended.at(-1) as HistoryCall)
    if (number % 115 > 0 && number > 20) continue
    const fresh = new RunHistory()
    for (const each of ended) fresh.ended(each)
    for (const condition of conditions) {
      const [first, ...others] = [fresh, grown, grown, fresh].map((history) => {
        const facts = { tool: { name: 'pay' }, run: { history, toolCalls: number }, now: 0 }
        const scope = new Scope(factReader(facts))
        try {
          return [condition.run(scope), scope.left]
        } catch (error) {
          return error instanceof OutOfSteps ? 'out of steps' : error
        }
      })
      for (const other of others) assert.deepEqual(other, first, `${number}: ${condition.source}`)
    }
  }
})

test('without a history, a condition on the past fails', () => {
  for (const source of [
    '"a" in run.labels',
    'run.calls.exists(c, c.ok)',
    'run.calls.exists(c, c.tool == "a")',
    'origin("a") == []',
  ]) {
    const compiled = compileCondition(source)
    assert.ok(compiled.ok, source)
    const result = evaluate(compiled.condition, { tool: { name: 'pay' }, now: 0 })
    assert.match(result.ok ? '' : result.message, /the history of the run is not known$/, source)
  }
})

test('labels belong to a tool by its name, one star, both spellings of an MCP tool, and a condition', () => {
  const rules = [
    { tool: 'read_mail', output: ['untrusted'], when: '!tool.output.from.endsWith("@example.com")' },
    { tool: 'mcp__github__*', output: ['untrusted'] },
    { tool: 'search', does: ['external'] },
    { tool: '*_file', does: ['destructive'], when: 'tool.input.path.startsWith("/etc")' },
  ]
  const labels = (tool: { name: string; server?: string; input?: Record<string, unknown>; output?: unknown }) =>
    labelsOfCall(rules, { tool, now: 0 })
  assert.deepEqual(labels({ name: 'read_mail', output: { from: 'a@example.com' } }), { does: [], output: [] })
  assert.deepEqual(labels({ name: 'read_mail', output: { from: 'a@b.example' } }), { does: [], output: ['untrusted'] })
  assert.deepEqual(labels({ name: 'read_mail', output: 'no mail' }), { does: [], output: ['unknown'] })
  assert.deepEqual(labels({ name: 'search', server: 'github' }), { does: ['external'], output: ['untrusted'] })
  assert.deepEqual(labels({ name: 'mcp__github__search' }), { does: ['external'], output: ['untrusted'] })
  assert.deepEqual(labels({ name: 'write_file', input: { path: '/etc/x' } }), { does: ['destructive'], output: [] })
  assert.deepEqual(labels({ name: 'write_file', input: { path: '/srv' } }), { does: [], output: [] })
  assert.deepEqual(labels({ name: '_fil' }), { does: [], output: [] })
})

test('a policy cannot read the output of a tool, because it decides before', () => {
  const compiled = compileCondition('tool.output == 1')
  const messages = compiled.ok ? [] : compiled.faults.map(({ message }) => message)
  assert.deepEqual(messages, ['tool has no field output; use one of name, input, annotations, server, labels'])
  assert.equal(compileCondition('tool.output == 1', true).ok, true)
})

test('only policies that read the past need a history', () => {
  const needs = (condition: string) => readHistory([{ condition }])
  assert.deepEqual(
    [
      'origin(tool.input.a) == []',
      'run.labels == []',
      'size(run.calls) > 1',
      'tool.labels == []',
      'run.toolCalls > 1',
      '(',
    ].map(needs),
    [true, true, true, false, false, false],
  )
})
