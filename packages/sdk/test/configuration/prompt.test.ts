import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeTacho } from '../../src/testing/fake-tacho.ts'

test('the deployed version is rendered, and later events and records of the run carry its version id', async (t) => {
  const fake = fakeTacho({ deployedPrompts: { greeting: 'Good day, {{ name }}!' } })
  t.after(fake.close)
  await fake.tacho.configuration.ready()
  const { versionId } = await fake.tacho.run((run) => {
    run.step('before')
    const prompt = fake.tacho.prompt('greeting', 'Hello {{name}}')
    assert.deepEqual([prompt.isFallback, prompt.version], [false, '1'])
    assert.equal(prompt.render({ name: 'Ada' }), 'Good day, Ada!')
    run.step('after')
    fake.tacho.reportIssue({ detectionType: 'CUSTOM' })
    return prompt
  })
  assert.ok(versionId)
  await fake.assertEvent('AGENT_STEP', { promptVersionId: versionId })
  const [before] = await fake.events()
  assert.equal(before?.payload['promptVersionId'], undefined)
  assert.equal((await fake.issues())[0]?.promptVersionId, versionId)
})

test('the fallback is used before the first load and if no such prompt is deployed', async (t) => {
  const fake = fakeTacho()
  t.after(fake.close)
  const early = fake.tacho.prompt('greeting', 'Hello {{name}}')
  assert.deepEqual([early.isFallback, early.versionId, early.content], [true, null, 'Hello {{name}}'])
  await fake.tacho.configuration.ready()
  assert.equal(fake.tacho.prompt('greeting', 'Hello').isFallback, true)
  await fake.deployPrompts({ greeting: 'Good day' })
  assert.equal(fake.tacho.prompt('greeting', 'Hello').content, 'Good day')
})

test('each placeholder is replaced once; without a value it stays; values are texts, not patterns', async (t) => {
  const fake = fakeTacho()
  t.after(fake.close)
  const prompt = fake.tacho.prompt('p', '{{a}} {{ b }} {{c}} {{constructor}} {{a}}' as string)
  assert.equal(prompt.render({ a: '{{b}} $& $1', b: 2 }), '{{b}} $& $1 2 {{c}} {{constructor}} {{b}} $& $1')
})

test('a prompt without placeholders needs no variables', (t) => {
  const fake = fakeTacho()
  t.after(fake.close)
  assert.equal(fake.tacho.prompt('p', 'Be brief.').render(), 'Be brief.')
  // Hosts without types can omit the variables.
  const render = fake.tacho.prompt('p', 'Greet {{name}}.').render as () => string
  assert.equal(render(), 'Greet {{name}}.')
})

test('variables are typed by the fallback', (t) => {
  const fake = fakeTacho()
  t.after(fake.close)
  const prompt = fake.tacho.prompt('p', 'Refund {{amount}} to {{ name }}')
  assert.equal(prompt.render({ amount: 5, name: 'Ada' }), 'Refund 5 to Ada')
  // @ts-expect-error: name is missing
  assert.equal(prompt.render({ amount: 5 }), 'Refund 5 to {{ name }}')
})

test('any name that was given is filled, an object as JSON; what nothing fills is said once for each prompt', async (t) => {
  const said: string[] = []
  const fake = fakeTacho({
    onDiagnostic: ({ code, message }) => void (code === 'prompt_variable_missing' && said.push(message)),
  })
  t.after(fake.close)
  const text = '{{größe}} {{1name}} {{ first name }} {{order}} {{list}} {{none}} {{missing}} {{#if x}}'
  const prompt = fake.tacho.prompt('p', text as string)
  const given = {
    größe: 'XL',
    '1name': 'Ada',
    'first name': 'Eva',
    order: { id: 7 },
    list: [1, 'a'],
    none: null,
    on: new Date(0),
  }
  const filled = 'XL Ada Eva {"id":7} [1,"a"] null {{missing}} {{#if x}}'
  assert.equal(prompt.render(given), filled)
  await fake.tacho.configuration.ready()
  assert.deepEqual(said, ['Nothing fills {{missing}} of the prompt p.'])
})

test('values that JSON would lose are written as what they hold', (t) => {
  const fake = fakeTacho()
  t.after(fake.close)
  const prompt = fake.tacho.prompt('p', '{{value}}' as string)
  const error = new TypeError('No such order')
  const cases: [given: unknown, text: string][] = [
    [new Map([['order', new Set([1, 'a'])]]), '{"order":[1,"a"]}'],
    [new Map([[7, 'a']]), '{"7":"a"}'],
    [new Set([new Map()]), '[{}]'],
    [error, '{"name":"TypeError","message":"No such order"}'],
    [{ errors: [error] }, '{"errors":[{"name":"TypeError","message":"No such order"}]}'],
    [Number.NaN, 'NaN'],
    [Number.NEGATIVE_INFINITY, '-Infinity'],
    [[Number.NaN, 1e21, -0], '["[NaN]",1e+21,0]'],
    [{ id: 10n }, '{"id":"10"}'],
    [10n, '10'],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [[new Date(0)], '["1970-01-01T00:00:00.000Z"]'],
    [{ toJSON: () => undefined }, '[unreadable]'],
    [Object.assign(() => 1, { toString: () => assert.fail() }), '[unreadable]'],
    [new Uint8Array(3), '[binary: 3 bytes]'],
    [{ file: Buffer.from('abc') }, '{"file":"[binary: 3 bytes]"}'],
    [new ArrayBuffer(2), '[binary: 2 bytes]'],
    [new URLSearchParams('a=1&b=2'), '[URLSearchParams: 2 entries]'],
    [{ pattern: /a/, headers: new Headers(), call: () => 1 }, '{"pattern":"[RegExp]","headers":"[Headers]"}'],
    [new (class Order {})(), '{}'],
    [null, 'null'],
    [true, 'true'],
  ]
  for (const [value, text] of cases) assert.equal(prompt.render({ value: value as never }), text)
})

test('white space in a placeholder costs no more than other text', (t) => {
  const fake = fakeTacho()
  t.after(fake.close)
  const content: string = `{{\n name\t}} {{ }} {{${' '.repeat(30_000)}`
  const prompt = fake.tacho.prompt('padded', content)
  assert.equal(prompt.render({ name: 'Ada' }), `Ada {{ }} {{${' '.repeat(30_000)}`)
})
