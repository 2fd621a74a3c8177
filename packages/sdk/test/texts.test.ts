/** A client that remembers long texts records the same as one that searches each text again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../contract/test/any-character.ts'
import { heapGrowth } from '../../server/test/setup/heap-growth.ts'
import { createDiagnostics } from '../src/delivery/diagnostics.ts'
import type { Payload } from '../src/recording/event.ts'
import type { MaskingOptions } from '../src/recording/mask.ts'
import { createPayloadCapture } from '../src/recording/payload.ts'
import { createRememberingWriting } from '../src/recording/texts.ts'
import { createWriting, type Writing } from '../src/recording/writing.ts'

function writer(create: typeof createWriting, masking: MaskingOptions = {}) {
  const diagnostics = createDiagnostics(() => undefined, { now: () => 0 })
  const writing: Writing = create({ masking }, diagnostics)
  const capturePayload = createPayloadCapture({ capture: 'full', metadataKeys: new Set() }, () => ({
    ...writing,
    metadata: () => ({}),
  }))
  let pieces = 0
  return {
    write(payload: unknown) {
      const written = capturePayload(payload as Payload).write()
      pieces = written.length
      return written.join('')
    },
    counts: () => diagnostics.counters({ queued: 0, queuedBytes: 0 }),
    /** Whether the last payload was built from remembered texts. */
    isOfPieces: () => pieces > 1,
  }
}

const PROSE = 'The parcel arrived on Tuesday; the box was empty. '
const HOSTILE = [
  'password: hunter2hunter2 ',
  'password',
  'the password',
  'x-api-key',
  'sk-AbCdEf0123456789AbCdEf',
  'authorization: Bearer ',
  'bearer abcdefghijklmnop',
  'https://user',
  'hunter2@example.com/',
  'tokens',
  '--token',
  'curl -u me:',
  '{"apiKey":"abc"}',
  '{"password":',
  '"secret" , ',
  '4012888888881881 ',
  '+4930901820',
  '\ud83d',
  '\udc00',
  '-----BEGIN PRIVATE KEY-----',
]
const HARMLESS = [
  ' [cut: 5 characters]',
  '\x7f [cut: 12 characters]rest ',
  '… [cut: 7 characters]',
  '\x7f\x7f',
  '"\x7f\x7f"',
  '\x7f',
  '\u001b[31m',
  '\0',
  '\\u001b \\ud83d ',
  '😀é',
  '\\',
  '"',
]

/** Mostly harmless, because a text is not remembered if anything in it may be masked. */
const fragment = fc.oneof(
  { weight: 30, arbitrary: fc.constant(PROSE) },
  { weight: 2, arbitrary: fc.constantFrom(...HARMLESS) },
  { weight: 1, arbitrary: fc.constantFrom(...HOSTILE) },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 20 }) },
)
const short = fc.array(fragment, { maxLength: 2 }).map((parts) => parts.join(''))
/** Long texts of prose or of one word. */
const long = fc
  .tuple(
    fc.array(fragment, { maxLength: 4 }),
    fc.constantFrom(PROSE, PROSE, PROSE, 'word-', ''),
    fc.array(fragment, { maxLength: 3 }),
  )
  .map(
    ([before, filler, after]) => before.join('') + filler.repeat(filler ? 900 / filler.length + 1 : 0) + after.join(''),
  )
/** So long that they are cut before masking and after it. */
const huge = fc
  .tuple(long, fc.constantFrom(PROSE, 'é, ', '"\\'), fc.integer({ min: 200_000, max: 450_000 }), long)
  .map(([before, filler, chars, after]) => before + filler.repeat(chars / filler.length) + after)
const several = fc.array(long, { minLength: 2, maxLength: 6 })

const NAMES = ['role', 'content', 'name', 'value', 'headers', 'text', '7', '__proto__', 'list', 'parts', 'input', 'id']
const SECRET_NAMES = ['password', 'tokens', 'key']

/** Payloads that share texts, as the calls of a conversation do. */
const conversationOf = (several: fc.Arbitrary<readonly string[]>) =>
  several.chain((texts) => {
    const text = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...texts) }, { weight: 2, arbitrary: short })
    const leaf = fc.oneof(
      { weight: 6, arbitrary: text },
      { weight: 1, arbitrary: fc.constantFrom(0, -0, 12.5, null, true, undefined) },
    )
    const name = fc.oneof(
      { weight: 30, arbitrary: fc.constantFrom(...NAMES) },
      { weight: 1, arbitrary: fc.constantFrom(...SECRET_NAMES) },
      { weight: 1, arbitrary: short },
    )
    const fields = (value: fc.Arbitrary<unknown>) =>
      fc.array(fc.tuple(name, value), { maxLength: 4 }).map((entries) => Object.fromEntries(entries))
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('value'), { maxLength: 5 }),
        fields(tie('value')),
        fc.record({ name: text, value: text }),
        fc.record({ role: fc.constant('user'), content: text }),
        fc.tuple(text, text),
      ),
    }))
    return fc.array(
      fc.record({
        model: fc.constant('model'),
        messages: fc.array(value, { minLength: 3, maxLength: 8 }),
        output: text,
      }),
      {
        minLength: 2,
        maxLength: 5,
      },
    )
  })

const MASKINGS: readonly MaskingOptions[] = [
  {},
  { email: true, phone: true, cardNumber: true, iban: true },
  { credentials: false },
  { credentials: false, phone: true },
  { keys: ['text'] },
  { custom: (text) => text.toUpperCase() },
]

const sameOf = (several: fc.Arbitrary<readonly string[]>, numRuns: number) => () =>
  fc.assert(
    fc.property(fc.constantFrom(...MASKINGS), conversationOf(several), (masking, payloads) => {
      const [remembering, plain] = [writer(createRememberingWriting, masking), writer(createWriting, masking)]
      for (const payload of payloads) assert.equal(remembering.write(payload), plain.write(payload))
      assert.deepEqual(remembering.counts(), plain.counts())
    }),
    // To make a payload of megabytes smaller takes minutes.
    { numRuns, endOnFailure: true },
  )

test('what is remembered changes nothing of what is recorded', sameOf(several, 300))

test('nor of payloads that are cut and shortened', sameOf(fc.tuple(long, huge, long), 8))

const messagesOf = (texts: readonly string[]) => ({ messages: texts.map((content) => ({ role: 'user', content })) })
const textOf = (index: number, chars = 12_000): string => `${index}. ${PROSE.repeat(chars / PROSE.length)}`

test('a text that was clean is not searched again, and one with a credential is masked each time', (t) => {
  let searched = 0
  const { write, isOfPieces } = writer(createRememberingWriting)
  const texts = [textOf(1), textOf(2), textOf(3)]
  const { test: search } = RegExp.prototype
  t.mock.method(RegExp.prototype, 'test', function (this: RegExp, text: string) {
    searched += text.length
    return search.call(this, text)
  })
  write(messagesOf(texts))
  searched = 0
  const next = messagesOf([...texts, textOf(4)])
  assert.equal(write(next), JSON.stringify(next))
  assert.ok(isOfPieces())
  // Two patterns search the new text and the short outline.
  assert.ok(searched < 2 * (12_000 + 500), `${searched} characters were searched`)
  const secret = `${textOf(5)} password=hunter2hunter2`
  for (let call = 0; call < 2; call++) {
    assert.match(write(messagesOf([...texts, secret])), /password=\[masked:credential\]/)
    assert.ok(!isOfPieces())
  }
})

test('the oldest texts are forgotten first, and little of a large text that comes once', async () => {
  const { write } = writer(createRememberingWriting)
  const grown = await heapGrowth(async () => {
    for (let index = 0; index < 300; index++)
      write(messagesOf([textOf(2 * index, 30_000), textOf(2 * index + 1, 2_000)]))
  })
  assert.ok(grown < 8 * 1_048_576, `${grown} bytes`)
})
