import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { readManifest } from '../../src/policies/apply/read-manifest.ts'

const files: Record<string, string> = { 'a.md': 'Be kind.\n', 'p.cel': 'tool.name == "a"\n' }
const read = (text: string) =>
  readManifest(text, (file) => {
    const found = files[file]
    return found === undefined ? { ok: false, reason: 'does not exist' } : { ok: true, text: found }
  })

function manifestOf(text: string) {
  const result = read(text)
  assert.ok(result.ok, JSON.stringify(result))
  return result.manifest
}

/** `line:column message` of each fault. */
function faultsOf(text: string): string[] {
  const result = read(text)
  assert.ok(!result.ok)
  return result.faults.map(({ place, message }) => `${place.line}:${place.column} ${message}`)
}

const policy = 'condition: "true", severity: LOW, action: WARN'

test('prompts and policies are in the file or in files that it names', () => {
  const { workspace, prompts, policies } = manifestOf(`
workspace: acme
prompts:
  a: { file: a.md }
  b:
    content: |
      One
       two
policies:
  p: { file: p.cel, severity: HIGH, action: BLOCK, name: P, description: Why }
  q: { condition: 'tool.name == "q"', severity: LOW, action: WARN }
`)
  assert.equal(workspace, 'acme')
  assert.deepEqual([prompts.get('a')?.content, prompts.get('b')?.content], ['Be kind.\n', 'One\n two\n'])
  const { place: _p, ...p } = policies.get('p') ?? assert.fail()
  assert.deepEqual(p, {
    name: 'P',
    description: 'Why',
    condition: 'tool.name == "a"',
    severity: 'HIGH',
    action: 'BLOCK',
    onError: 'act',
    saysOnError: false,
    approvers: 1,
    grants: 'allow',
    template: null,
  })
  const { place: _q, ...q } = policies.get('q') ?? assert.fail()
  assert.deepEqual([q.name, q.description, q.onError], ['q', null, 'ignore'])
  const { policies: said } = manifestOf(
    'policies:\n  p: { condition: "true", severity: LOW, action: BLOCK, onError: ignore }',
  )
  assert.deepEqual([said.get('p')?.onError, said.get('p')?.saysOnError], ['ignore', true])
  const [fault] = faultsOf('policies:\n  p: { condition: "true", severity: LOW, action: BLOCK, onError: open }')
  assert.match(fault ?? '', /policies\.p\.onError.*must be one of act, ignore/)
  const asking = (approvers: string, action = 'REQUIRE_APPROVAL') =>
    `policies:\n  p: { condition: "true", severity: LOW, action: ${action}, approvers: ${approvers} }`
  assert.equal(manifestOf(asking('2')).policies.get('p')?.approvers, 2)
  assert.match(faultsOf(asking('3'))[0] ?? '', /policies\.p\.approvers.*must be one of 1, 2/)
  assert.equal(manifestOf(`${asking('1').slice(0, -2)}, grants: never }`).policies.get('p')?.grants, 'never')
  assert.match(faultsOf(asking('2', 'BLOCK'))[0] ?? '', /two approvers need the action REQUIRE_APPROVAL/)
})

test('an environment lists newest versions or version numbers; missing sections stay unchanged', () => {
  const { environments } = manifestOf(`
prompts:
  a: { content: x }
policies:
  p: { ${policy} }
environments:
  one: { prompts: [a], policies: { p: 3 } }
  two: { policies: [] }
  three: { policies: { p: newest }, prompts: { a: "2" } }
`)
  const versions = (name: string) => {
    const { prompts, policies } = environments.get(name) ?? assert.fail()
    const told = (wanted: typeof prompts) => wanted && [...wanted].map(([key, { version }]) => [key, version])
    return [told(prompts), told(policies)]
  }
  assert.deepEqual(versions('one'), [[['a', null]], [['p', '3']]])
  assert.deepEqual(versions('two'), [null, []])
  assert.deepEqual(versions('three'), [[['a', '2']], [['p', null]]])
})

test('a file with empty sections changes nothing', () => {
  const { prompts, policies, environments } = manifestOf('prompts:\npolicies: {}\n')
  assert.deepEqual([prompts.size, policies.size, environments.size], [0, 0, 0])
})

test('aliases are resolved', () => {
  const { policies } = manifestOf(`
policies:
  p: &p { ${policy} }
  q: *p
`)
  assert.equal(policies.get('q')?.condition, 'true')
})

test('all faults are reported together, each with its position', () => {
  assert.deepEqual(
    faultsOf(`workspace: 7
prompts:
  a: { file: none.md }
  b: {}
  c: { content: x, file: a.md }
policies:
  P: { ${policy} }
  p:
    condition: |
      true &&
        amount
    severity: low
    action: BLOCK
environments:
  one: { prompts: [z, b, b], policies: { p: 0 } }
  two: [p]
extra: 1`).map((fault) => fault.replace(/ must|: .*/, '')),
    [
      '1:1 workspace',
      '3:8 prompts.a.file',
      '4:3 prompts.b',
      '5:3 prompts.c',
      '7:3 policies.P',
      '9:5 policies.p.condition',
      '12:5 policies.p.severity',
      '15:20 environments.one.prompts[0]',
      '15:26 environments.one.prompts[2]',
      '15:42 environments.one.policies.p',
      '16:3 environments.two',
      '17:1 extra',
    ],
  )
})

test('an invalid condition is reported with its position in the condition', () => {
  const [fault] = faultsOf(`policies:\n  p: { condition: "tool.name ==", severity: LOW, action: WARN }`)
  assert.match(fault ?? '', /^2:8 policies\.p\.condition: line 1, column 1\d of the condition: /)
})

test('a text that YAML reads as another type must be quoted', () => {
  for (const condition of ['true', '1', '2026-11-20', 'null', '[a]', '{}']) {
    const faults = faultsOf(`policies:\n  p: { condition: ${condition}, severity: LOW, action: WARN }`)
    assert.match(faults[0] ?? '', /^2:8 policies\.p\.condition: /, condition)
  }
})

test('invalid YAML and duplicate keys are rejected', () => {
  for (const text of ['a: [1', 'prompts:\n  a: { content: x }\n  a: { content: y }', '\t- a', 'a: *b', '']) {
    assert.ok(faultsOf(text).length > 0, text)
  }
  const bomb = ['a: &a [x]', ...Array.from('bcdefghij', (name, index) => `${name}: &${name} [*${'abcdefghi'[index]}]`)]
  assert.ok(faultsOf(bomb.join('\n')).length > 0)
})

test('a label that clients give by themselves is a fault of the file, before anything is deployed', () => {
  assert.deepEqual(faultsOf('labels:\n  - { tool: pay, does: [money, user], output: [unknown] }\n'), [
    '2:32 labels[0].does[1]: must not be user: clients give this label by themselves',
    '2:48 labels[0].output[0]: must not be unknown: clients give this label by themselves',
  ])
})

test('limits hold at the limit and one past it', () => {
  const name = 'n'.repeat(LIMITS.nameChars)
  manifestOf(`prompts:\n  ${name}: { content: x }`)
  assert.equal(faultsOf(`prompts:\n  ${name}n: { content: x }`).length, 1)
  const id = 'p'.repeat(LIMITS.policyIdChars)
  manifestOf(`policies:\n  ${id}: { ${policy} }`)
  assert.equal(faultsOf(`policies:\n  ${id}p: { ${policy} }`).length, 1)
  const content = 'x'.repeat(LIMITS.promptContentBytes)
  manifestOf(`prompts:\n  a: { content: "${content}" }`)
  assert.equal(faultsOf(`prompts:\n  a: { content: "${content}x" }`).length, 1)
  const description = 'd'.repeat(LIMITS.descriptionChars)
  manifestOf(`policies:\n  p: { ${policy}, description: ${description} }`)
  assert.equal(faultsOf(`policies:\n  p: { ${policy}, description: ${description}d }`).length, 1)
})
