import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { runCommand } from '../tacho.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'tacho-policies-test-'))
after(() => rmSync(directory, { recursive: true }))
const file = path.join(directory, 'tacho.yaml')
writeFileSync(
  file,
  `policies:
  refunds: { condition: 'tool.name == "refund" && tool.input.amount > 100.0', severity: LOW, action: REQUIRE_APPROVAL }
  drops: { condition: 'tool.server == "db" && tool.name == "drop_table"', severity: LOW, action: BLOCK, onError: ignore }
`,
)
const examples = path.join(directory, 'policies.test.yaml')
const run = (text: string, ...args: string[]) => {
  writeFileSync(examples, text)
  return runCommand(['policies', 'test', '-f', file, ...args])
}

const GOOD = `
- { tool: refund, input: { amount: 500 }, expect: REQUIRE_APPROVAL, policies: [refunds] }
- { tool: refund, input: { amount: 30 }, expect: ALLOW, policies: [] }
- { name: arguments without names, tool: refund, input: { args: ['1007', 30] }, expect: REQUIRE_APPROVAL }
- { tool: mcp__db__drop_table, expect: BLOCK, policies: [drops] }
- { tool: drop_table, server: db, expect: BLOCK }
`

test('examples are decided as agents decide them, without a server', async () => {
  const { code, stdout } = await run(GOOD)
  assert.deepEqual([code, stdout], [0, '5 of 5 examples decided as expected.\n'])
  assert.equal((await run(JSON.stringify({ tests: [{ tool: 'x', expect: 'ALLOW' }] }))).code, 0)
})

test('an example that is decided otherwise is named with the reason, and fails the command', async () => {
  const junit = path.join(directory, 'policies.xml')
  const text = `- { name: 'a <b> & "c"', tool: refund, input: { args: [30] }, expect: ALLOW }\n- { tool: drop_table, expect: ALLOW }\n`
  const { code, stdout } = await run(text, '--junit', junit)
  const reason = 'the condition of refunds could not be evaluated: line 1, column 26: missing key "amount"'
  assert.equal(code, 1)
  assert.ok(
    stdout.startsWith(`✗ 1 a <b> & "c": expected ALLOW, but it is REQUIRE_APPROVAL by refunds; ${reason}`),
    stdout,
  )
  assert.match(stdout, /\n1 of 2 examples decided as expected\.\n$/)
  const xml = readFileSync(junit, 'utf8')
  assert.match(xml, /<testsuite name="tacho policies test" tests="2" failures="1">/)
  assert.match(xml, /name="1 a &lt;b&gt; &amp; &quot;c&quot;"><failure message="expected ALLOW, but/)
  const other = await run(
    '- { tool: refund, input: { amount: 500 }, expect: REQUIRE_APPROVAL, policies: [drops] }',
    '--json',
  )
  assert.deepEqual([other.code, (JSON.parse(other.stdout) as { failed: number }).failed], [1, 1])
})

test('a file that is no list of examples is invalid', async () => {
  for (const [text, why] of [
    ['{}', /list of examples/],
    ['[]', /list of examples/],
    ['- x', /example 1 is not a mapping/],
    ['- { tool: a, expect: deny }', /needs expect: one of ALLOW/],
    ['- { expect: ALLOW }', /needs tool/],
    ['- { tool: a, expect: ALLOW, inputs: {} }', /unknown field inputs/],
    ['- { tool: a, expect: ALLOW, policies: [other] }', /policies of example 1/],
    ['- { tool: a, expect: ALLOW, now: soon }', /now of example 1/],
    ['- [', /policies\.test\.yaml: /],
  ] as const) {
    const { code, stderr } = await run(text)
    assert.equal(code, 2, text)
    assert.match(stderr, why)
  }
})

test('an example has a past: what the user said, and earlier calls with the labels of the file', async () => {
  const past = path.join(directory, 'past.yaml')
  writeFileSync(
    past,
    `labels:
  - { tool: read_mail, output: [untrusted] }
  - { tool: 'send_*', does: [external] }
policies:
  leak: { condition: '"external" in tool.labels && "untrusted" in run.labels', severity: HIGH, action: BLOCK }
  named: { condition: 'tool.name == "pay" && !("user" in origin(tool.input.to))', severity: HIGH, action: BLOCK }
  order: { condition: 'tool.name == "refund" && !run.calls.exists(c, c.tool == "check" && c.ok)', severity: LOW, action: WARN }
`,
  )
  const text = `
- { tool: send_mail, expect: ALLOW }
- { tool: send_mail, past: [{ tool: read_mail, output: hi }], expect: BLOCK, policies: [leak] }
- { tool: pay, input: { to: acme-77 }, past: [{ said: pay acme-77 }], expect: ALLOW }
- { tool: pay, input: { to: acme-77 }, past: [{ said: pay }, { tool: read_mail, output: acme-77 }], expect: BLOCK }
- { tool: refund, past: [{ tool: check, output: yes }], expect: ALLOW }
- { tool: refund, past: [{ tool: check, error: no }], expect: WARN }
`
  writeFileSync(examples, text)
  const { code, stdout } = await runCommand(['policies', 'test', examples, '-f', past])
  assert.deepEqual([code, stdout], [0, '6 of 6 examples decided as expected.\n'])
  for (const wrong of ['hi', '[hi]', '[{ said: a, tool: b }]', '[{ tool: a, outcome: b }]']) {
    writeFileSync(examples, `- { tool: pay, expect: ALLOW, past: ${wrong} }`)
    const refused = await runCommand(['policies', 'test', examples, '-f', past])
    assert.equal(refused.code, 2, wrong)
    assert.match(refused.stderr, /past of example 1 must be a list of \{ said \}/)
  }
})

test('labels of a file are checked: names, words and conditions, each with its place', async () => {
  const labels = path.join(directory, 'labels.yaml')
  for (const [rule, fault] of [
    ['{ output: [a] }', /labels\[0\]: needs tool/],
    ['{ tool: a }', /needs output or does/],
    ['{ tool: a, output: [A b] }', /labels\[0\]\.output\[0\]: must have 1 to 40 small letters/],
    ['{ tool: a, output: [b], when: "tool.outptu == 1" }', /of the condition/],
    ['{ tool: a, outputs: [b] }', /is not known here/],
  ] as const) {
    writeFileSync(labels, `labels:\n  - ${rule}\n`)
    const { code, stderr } = await runCommand(['policies', 'test', examples, '-f', labels])
    assert.equal(code, 2, rule)
    assert.match(stderr, fault)
  }
})

test('each ready set is written as files whose examples hold, over no other file', async () => {
  const listed = await runCommand(['policies', 'init', '--json'])
  const { items } = JSON.parse(listed.stdout) as { items: { name: string }[] }
  assert.ok(items.length >= 4)
  for (const { name } of items) {
    const written = await runCommand(['policies', 'init', name, '-d', directory])
    assert.equal(written.code, 0, written.stderr)
    assert.match(written.stdout, /Nothing is deployed/)
    const set = path.join(directory, `${name}.yaml`)
    const held = await runCommand(['policies', 'test', path.join(directory, `${name}.test.yaml`), '-f', set])
    assert.equal(held.code, 0, `${name}: ${held.stdout}${held.stderr}`)
    writeFileSync(set, 'mine')
    assert.equal((await runCommand(['policies', 'init', name, '-d', directory])).code, 2)
    assert.equal(readFileSync(set, 'utf8'), 'mine')
  }
  assert.equal((await runCommand(['policies', 'init', 'constructor', '-d', directory])).code, 2)
})
