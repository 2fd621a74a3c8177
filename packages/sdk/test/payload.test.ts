import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { anyCharacter } from '../../contract/test/any-character.ts'
import { createDiagnostics } from '../src/delivery/diagnostics.ts'
import { exceptionOf } from '../src/recording/exception.ts'
import { snapshotOf } from '../src/recording/json.ts'
import type { MaskingOptions } from '../src/recording/mask.ts'
import { metadataOf } from '../src/recording/metadata.ts'
import type { Payload } from '../src/recording/event.ts'
import { createPayloadCapture } from '../src/recording/payload.ts'
import { createWriting } from '../src/recording/writing.ts'

const KIB256 = 262_144

function writer(
  options: { capture?: 'full' | 'metadata-only'; metadataKeys?: string[]; masking?: MaskingOptions } = {},
) {
  const codes: string[] = []
  const diagnostics = createDiagnostics(({ code }) => codes.push(code), { now: () => 0 })
  const { capture = 'full', metadataKeys = [], masking = {} } = options
  const writing = { ...createWriting({ masking }, diagnostics), metadata: metadataOf }
  const capturePayload = createPayloadCapture({ capture, metadataKeys: new Set(metadataKeys) }, () => writing)
  return {
    write: (payload: unknown) =>
      capturePayload(payload as Payload)
        .write()
        .join(''),
    codes,
  }
}

const written = (payload: unknown): Record<string, unknown> =>
  JSON.parse(writer().write(payload)) as Record<string, unknown>

test('a payload of 256 KiB is unchanged; with one more byte it is shortened and marked', () => {
  const { write, codes } = writer()
  const empty = Buffer.byteLength('{"text":""}')
  const exact = { text: 'x'.repeat(KIB256 - empty) }
  assert.equal(write(exact), JSON.stringify(exact))
  assert.deepEqual(codes, [])
  const over = JSON.parse(write({ text: `${exact.text}x` })) as { text: string; tachoShortened: object }
  assert.deepEqual(over.tachoShortened, { originalBytes: KIB256 + 1, cutTexts: 1, cutLists: 0 })
  assert.match(over.text, /^x+… \[cut: \d+ characters\]x+$/)
  assert.ok(over.text.length > 261_000)
  assert.deepEqual(codes, ['payload_shortened'])
})

test('bytes are counted, not characters', () => {
  const text = 'é'.repeat(200_000)
  assert.ok(Buffer.byteLength(writer().write({ text })) <= KIB256)
})

test('short texts are kept beside long ones, and cut lists end with a mark', () => {
  const short = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`key${n}`, `value ${n}`]))
  const both = written({ ...short, long: 'y'.repeat(1_000_000) })
  for (const [key, value] of Object.entries(short)) assert.equal(both[key], value)
  const { list, tachoShortened } = written({ list: Array.from({ length: 200_000 }, (_, n) => n) }) as {
    list: unknown[]
    tachoShortened: { cutLists: number }
  }
  assert.equal(tachoShortened.cutLists, 1)
  assert.deepEqual(list.slice(0, 3), [0, 1, 2])
  assert.match(String(list.at(-1)), /^\[cut: \d+ more\]$/)
  assert.equal(Number(/\d+/.exec(String(list.at(-1)))?.[0]) + list.length - 1, 200_000)
})

test('a shortened payload is valid JSON within the limit and uses most of it', () => {
  const text = fc.string({ unit: anyCharacter, maxLength: 50 })
  const leaf = fc.oneof(text, fc.integer(), fc.constant(null))
  const tree = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.tuple(text, fc.integer({ min: 1, max: 3_000 })).map(([part, times]) => part.repeat(times)),
      fc.tuple(tie('node'), fc.integer({ min: 1, max: 300 })).map(([node, times]) => Array(times).fill(node)),
      fc.dictionary(text, tie('node')),
    ),
  })).node
  fc.assert(
    fc.property(tree, (value) => {
      const payload = { value, filler: 'z'.repeat(KIB256) }
      const json = writer().write(payload)
      assert.ok(Buffer.byteLength(json) <= KIB256)
      assert.ok(Buffer.byteLength(json) > KIB256 / 4)
      assert.ok('tachoShortened' in (JSON.parse(json) as object))
    }),
    { numRuns: 30 },
  )
})

test('many short texts leave the room that they do not need to a long one', () => {
  const payload = { tags: Array<string>(7_000).fill(''), filler: 'z'.repeat(KIB256) }
  assert.ok(Buffer.byteLength(writer().write(payload)) > KIB256 * 0.99)
})

test('200 levels are kept, deeper ones are cut with a mark', () => {
  const nested = (levels: number): unknown => (levels === 1 ? { end: 1 } : { in: nested(levels - 1) })
  assert.deepEqual(written(nested(200)), nested(200))
  assert.match(JSON.stringify(written(nested(201))), /\[cut: nested too deeply\]/)
  const hostile: unknown[] = []
  let innermost = hostile
  for (let n = 0; n < 20_000; n++) innermost.push((innermost = []))
  assert.match(JSON.stringify(written({ hostile })), /\[cut: nested too deeply\]/)
})

test('values that JSON cannot express are marked, and never throw', () => {
  const getter = Object.defineProperty({ fine: 1 }, 'bad', {
    enumerable: true,
    get: () => {
      throw new Error('getter')
    },
  })
  const cycle: Record<string, unknown> = { big: 12n }
  cycle['again'] = cycle
  cycle['getter'] = getter
  cycle['throwing'] = {
    toJSON: () => {
      throw new Error('toJSON')
    },
  }
  assert.deepEqual(written(cycle), {
    big: '12',
    again: '[circular]',
    getter: { fine: 1, bad: '[unreadable]' },
    throwing: '[unreadable]',
  })
  assert.deepEqual(written(undefined), {})
  assert.deepEqual(written([1, 2]), { value: [1, 2] })
  assert.deepEqual(written('text'), { value: 'text' })
  assert.deepEqual(written({ half: '\ud83d' }), { half: '\ufffd' })
  const failed = written({ error: new TypeError('no') }) as { exception: { stack: string } }
  const { stack } = failed.exception
  assert.deepEqual(failed, { error: 'TypeError: no', exception: { type: 'TypeError', message: 'no', stack } })
  assert.match(stack, /^TypeError: no\n {4}at /)
})

test('errors are told apart by the name of their class, by their code and by the status of the answer', () => {
  class APIError extends Error {
    status: number | undefined
    code: unknown
    constructor(message: string, status?: number, code?: unknown) {
      super(message)
      this.status = status
      this.code = code
    }
  }
  class RateLimitError extends APIError {}
  class OutOfStock extends TypeError {}
  const minified = new (class tn extends APIError {})('m', 429, 'rate_limit_exceeded')
  const dns = Object.assign(new Error('m'), { code: 'ECONNREFUSED', statusCode: 502 })
  const named = Object.assign(new RateLimitError('m', 429), { name: 'Throttled', code: { no: 1 } })
  const hostile = Object.defineProperty(new Error('m'), 'status', { get: () => assert.fail() })
  const facts = (error: Error) => {
    const { type, code, status } = exceptionOf(error)
    return [type, code, status]
  }
  assert.deepEqual(
    [new RateLimitError('m', 429, 'x y'), new OutOfStock('m'), minified, dns, named, hostile].map(facts),
    [
      ['RateLimitError', undefined, 429],
      ['OutOfStock', undefined, undefined],
      ['Error', 'rate_limit_exceeded', 429],
      ['Error', 'ECONNREFUSED', 502],
      ['Throttled', undefined, 429],
      ['object', undefined, undefined],
    ],
  )
  const failed = written({ error: new RateLimitError('no', 429), cause: new OutOfStock('m') })
  assert.equal((failed as { error: string }).error, 'RateLimitError: no')
  assert.deepEqual((failed as { cause: unknown }).cause, { name: 'OutOfStock', message: 'm' })
})

test('only the beginning of a huge value is read, so that recording does not block the host', () => {
  let reads = 0
  const endless = (): object =>
    new Proxy([], {
      get: (_, key) => (key === 'length' ? 10_000_000 : key === 'toJSON' ? undefined : (reads++, 'x')),
    })
  const { list } = written({ list: endless() }) as { list: string[] }
  assert.ok(reads < 200_000, String(reads))
  assert.match(String(list.at(-1)), /^\[cut: \d+ more\]$/)
  // Values after a huge one are cut too, with a mark.
  const cut = written({ numbers: Array(10_000_000).fill(1), last: 1 }) as { numbers: unknown[] }
  assert.ok(cut.numbers.length > 100_000)
  assert.ok('[cut: 1 more]' in cut && 'tachoShortened' in cut && !('last' in cut))
  // Each read creates the next object.
  const growing = (): object => ({
    get next() {
      reads++
      return growing()
    },
  })
  reads = 0
  assert.match(JSON.stringify(written(growing())), /\[cut: nested too deeply\]/)
  assert.ok(reads < 1_000, String(reads))
  const { text } = written({ text: 'x'.repeat(50_000_000) }) as { text: string }
  assert.match(text, /^x+… \[cut: \d+ characters\]x*/)
  const wide = Object.fromEntries(Array.from({ length: 300_000 }, (_, n) => [`key${n}`, { n }]))
  assert.ok('tachoShortened' in written({ wide }))
})

test('of an object with very many keys, no more are read than a payload can hold', () => {
  const keys = Array.from({ length: 200_000 }, (_, n) => `k${n}`)
  let reads = 0
  let walks = 0
  const many = (): object =>
    new Proxy(
      {},
      {
        ownKeys: () => (walks++, keys),
        getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }),
        get: (_, key) => (typeof key === 'string' && key.startsWith('k') ? (reads++, 1) : undefined),
      },
    )
  const { write } = writer()
  for (const payload of [{ nested: many() }, many()]) {
    ;[reads, walks] = [0, 0]
    const record = JSON.parse(write(payload)) as object
    assert.ok('tachoShortened' in record)
    // Listing the keys is what blocks the host longest.
    assert.ok(reads <= 43_691 && walks === 1, `${reads} reads, ${walks} walks`)
  }
  ;[reads, walks] = [0, 0]
  writer({ capture: 'metadata-only' }).write({ usage: many() })
  writer({ capture: 'metadata-only' }).write(many())
  assert.ok(reads <= 2 * 43_691 && walks <= 2, `${reads} reads, ${walks} walks`)
  const fits = Object.fromEntries(keys.slice(0, 20_000).map((key) => [key, 1]))
  assert.deepEqual(written(fits), fits)
})

test('of a long list no more is read than can be kept, and the mark says how much is missing', () => {
  let reads = 0
  class Read extends Date {
    override toJSON(): string {
      reads++
      return super.toJSON()
    }
  }
  const item = { name: 'n', values: [1, 2, { deep: true }], note: null }
  for (const [one, most] of [
    [new Read(0), 2 * 10_000],
    [Object.create({ class: 1 }, { get: { enumerable: true, get: () => (reads++, 'x') } }) as object, 2 * 20_000],
    [new Map(), 0],
    [[], 0],
    [Buffer.alloc(1), 0],
    [new Error('e'), 0],
    [123_456, 0],
    ['a text', 0],
    [item, 0],
  ] as const) {
    reads = 0
    const record = JSON.parse(writer().write({ list: Array(300_000).fill(one) })) as { list: unknown[] }
    assert.ok(reads <= most, `${reads} reads`)
    const [, more] = /^\[cut: (\d+) more\]$/.exec(String(record.list.at(-1))) ?? []
    assert.equal(Number(more) + record.list.length - 1, 300_000)
    const kept = Buffer.byteLength(JSON.stringify(record))
    assert.ok(kept > KIB256 - 1_000, `${kept} bytes of ${JSON.stringify(one)}`)
  }
})

test('a megabyte of digits, or of any other long word, is masked by every rule in a moment', async () => {
  const masking = { email: true, phone: true, cardNumber: true, iban: true }
  for (const word of ['1234567890', 'deadbeef01', 'AB12CD34', 'a-b.c_d']) {
    const text = word.repeat(1_000_000 / word.length)
    const { write } = writer({ masking })
    const took = [1, 2, 3].map(() => {
      const { user } = process.cpuUsage()
      write({ text })
      return process.cpuUsage().user - user
    })
    // Before the fix, a rule tried each length of a word, which took 200 ms.
    assert.ok(Math.min(...took) < 120_000, `${word}: ${took.join(', ')} µs`)
  }
})

test('of a text of more than 64 Mi characters, only the number of characters is recorded', () => {
  const { text } = written({ text: 'x'.repeat(67_108_865) })
  assert.equal(text, '… [cut: 67108865 characters]')
  assert.match(String(written({ text: 'x'.repeat(67_108_864) })['text']), /^x+… \[cut: \d+ characters\]/)
})

test('errors and binary data inside a payload are readable, and toJSON is called once', () => {
  let calls = 0
  const own = { toJSON: () => ({ calls: ++calls }) }
  const bytes = new Uint8Array(1_000_000)
  assert.deepEqual(written({ cause: new RangeError('no'), bytes, own, when: new Date(0) }), {
    cause: { name: 'RangeError', message: 'no' },
    bytes: '[binary: 1000000 bytes]',
    own: { calls: 1 },
    when: '1970-01-01T00:00:00.000Z',
  })
})

test('values that hide what they hold have a mark, also inside an object of a class', () => {
  class Order {
    readonly id = 1
    readonly lines = new Map([['a', 1]])
  }
  class Own {
    get [Symbol.toStringTag]() {
      return 'Own'
    }
    readonly seen = true
  }
  const hidden = {
    map: new Map([[1, 2]]),
    set: new Set([1, 2]),
    headers: new Headers({ a: 'b' }),
    response: new Response('text'),
    blob: new Blob(['four']),
    buffer: new ArrayBuffer(5),
    promise: Promise.resolve(1),
    form: new URLSearchParams('a=b'),
    order: new Order(),
    own: new Own(),
    boxed: Object(1) as number,
    none: {},
    foreign: runInNewContext('new RangeError("far")') as Error,
    far: runInNewContext('({ plain: new Map() })') as object,
  }
  assert.deepEqual(written(hidden), {
    map: '[Map: 1 entries]',
    set: '[Set: 2 entries]',
    headers: '[Headers]',
    response: '[Response]',
    blob: '[binary: 4 bytes]',
    buffer: '[binary: 5 bytes]',
    promise: '[Promise]',
    form: '[URLSearchParams: 1 entries]',
    order: { id: 1, lines: '[Map: 1 entries]' },
    own: { seen: true },
    boxed: {},
    none: {},
    foreign: { name: 'RangeError', message: 'far' },
    far: { plain: '[Map: 0 entries]' },
  })
  assert.deepEqual(written({ error: hidden.foreign })['error'], 'RangeError: far')
})

test('a key named __proto__ is recorded like any other, also when its payload is masked or shortened', () => {
  const payload = (more: object): object =>
    JSON.parse(`{"__proto__":{"isAdmin":true},"x":${JSON.stringify(more)}}`) as object
  for (const more of [{}, { password: 'a' }, { text: 'x'.repeat(300_000) }]) {
    const json = writer().write(payload(more))
    assert.ok(json.startsWith('{"__proto__":{"isAdmin":true}'), json.slice(0, 100))
  }
  assert.equal(({} as { isAdmin?: boolean }).isAdmin, undefined)
})

test('any value becomes a JSON object', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }), (value) => {
      const json = writer().write(value)
      assert.ok(json.startsWith('{'))
      JSON.parse(json)
    }),
  )
})

test('metadata-only keeps no content', () => {
  const { write } = writer({ capture: 'metadata-only', metadataKeys: ['tenant'] })
  const call = {
    model: 'm',
    latency: 12,
    cost: 0.1,
    usage: { promptTokens: 1, note: 'text', details: { cached: 2, note: 'text' } },
    messages: [{ role: 'user', content: 'secret plan' }],
    output: 'secret plan',
    text: 'secret plan',
    input: { plan: 1 },
    toolName: 'search',
    error: new RangeError('secret plan'),
    custom: 'secret plan',
    tenant: 'acme',
  }
  assert.deepEqual(JSON.parse(write(call)), {
    model: 'm',
    latency: 12,
    cost: 0.1,
    usage: { promptTokens: 1, details: { cached: 2 } },
    toolName: 'search',
    error: 'RangeError',
    tenant: 'acme',
    exception: { type: 'RangeError' },
  })
  const { error, exception } = JSON.parse(write({ error: Object.assign(new Error('secret plan'), { status: 429 }) }))
  assert.deepEqual([error, exception], ['Error', { type: 'Error', status: 429 }])
  assert.deepEqual(JSON.parse(write({ model: 'x'.repeat(300), policyIds: ['p'], action: { no: 1 } })), {
    policyIds: ['p'],
  })
})

test('an error in masking masks everything and is reported', () => {
  const { write, codes } = writer({
    masking: {
      custom: () => {
        throw new Error('broken')
      },
    },
  })
  assert.equal(write({ text: 'secret plan' }), '{"masked":"[masked:error]"}')
  assert.deepEqual(codes, ['masking_failed'])
})

test('a text that is cut before masking holds no part of a credential', () => {
  const address = 'https://user:hunter2@'
  for (let missing = 1; missing < 12; missing++) {
    const until = (units: number) =>
      `${'word '.repeat(units / 5).slice(0, units - address.length + missing - 1)} ${address}host`
    const { message, stack = '', causes } = exceptionOf(new Error(until(4_096), { cause: new Error(until(4_096)) }))
    const long = new Error('late')
    long.stack = until(16_384)
    const texts = [message, causes?.[0]?.message ?? '', exceptionOf(long).stack ?? '']
    // Both ends of a cut in the middle are dropped when the payload is shortened.
    texts.push(String(written({ text: `${until(218_454)} ${'word '.repeat(60_000)}` })['text']))
    texts.push(String(written({ text: `${'word '.repeat(90_000)}${until(300_000)} ${'x'.repeat(109_226)}` })['text']))
    for (const text of texts)
      assert.ok(/… \[cut: \d+ characters\]/.test(text) && !text.includes('user'), text.slice(-80))
    assert.ok(stack.includes('hunter2'), 'what is whole is masked later')
  }
  assert.equal(exceptionOf(new Error('x'.repeat(5_000))).message, `${'x'.repeat(3_840)}… [cut: 1160 characters]`)
})

test('no rest of a long credential stays after a cut where almost all is masked', () => {
  // Then the remaining text is short enough, and is not cut again.
  for (const form of [`eyJ${'x'.repeat(3_000)}`, `sk-${'x'.repeat(400)}`, `password=${'x'.repeat(3_000)}`])
    for (const first of ['', 'word '.repeat(300)]) {
      const text = String(written({ text: first + `${form}\n`.repeat(1_000_000 / form.length) })['text'])
      assert.match(text, /\[masked:credential\][^]* \[cut: \d+ characters\]/)
      assert.ok(!text.includes('xxxxxx'), form.slice(0, 20))
    }
})

test('a long text keeps its end, where the error of a log is, and a file in base64 is whole or its type and size', () => {
  const log = `start ${'😀 step\n'.repeat(60_000)}Error: out of stock`
  const text = String(written({ log })['log'])
  assert.match(text, /^start 😀 step.*… \[cut: \d+ characters\].*Error: out of stock$/s)
  assert.ok(text.isWellFormed())
  const image = `data:image/png;base64,${'A'.repeat(400_000)}`
  assert.equal(written({ image })['image'], '[cut: image/png, 300000 bytes]')
  const large = `data:image/png;base64,${'A'.repeat(1_200_000)}`
  assert.equal(written({ large })['large'], '[cut: image/png, 900000 bytes]')
})

test('a very long text is cut before it is masked, and says exactly how much is missing', () => {
  const log = `start ${'1234567890'.repeat(100_000)} Error: out of stock`
  const { snapshot, text } = { snapshot: snapshotOf({ log }, 200), text: String(written({ log })['log']) }
  assert.ok(snapshot.isCut && snapshot.text.length < 327_800, `${snapshot.text.length} characters are masked`)
  const [whole, start = '', missing, end = ''] =
    /^(start \d+)… \[cut: (\d+) characters\](\d+ Error: out of stock)$/.exec(text) ?? []
  assert.ok(whole)
  assert.equal(start.length + Number(missing) + end.length, log.length)
})

test('a cut before masking ends with an ellipsis, and its bytes count', () => {
  const texts = Array.from({ length: 2_500 }, (_, index) => `${index} ${'word '.repeat(180)}`)
  const json = JSON.stringify(written({ first: 'x'.repeat(10_000), texts }))
  assert.ok(!json.includes('\x7f') && json.includes('word … [cut: '), json.slice(-400))
  assert.ok(Buffer.byteLength(json) <= 262_144, `${Buffer.byteLength(json)} bytes`)
})

test('after texts of more than is masked, names, short texts and numbers stay', () => {
  const rest = {
    output: 'the answer',
    usage: { promptTokens: 90_000 },
    outcome: 'returned',
    [`a ${'long '.repeat(60)}name`]: 1,
  }
  for (const count of [10, 20]) {
    const named = Array.from({ length: count }, (_, at) => ({ role: 'user', name: `n${at}` }))
    const messages = named.map((message) => ({ ...message, content: 'word '.repeat(9_000) }))
    const {
      messages: recorded,
      tachoShortened,
      ...others
    } = written({ messages, ...rest }) as {
      messages: typeof messages
      tachoShortened: unknown
    }
    assert.deepEqual(others, rest)
    assert.deepEqual(
      recorded.map(({ content: _, ...message }) => message),
      named,
    )
    assert.ok(tachoShortened)
    // The newest messages get as much room as the others if at most 524,288 characters come before them.
    const lengths = recorded.map(({ content }) => content.length)
    assert.ok(lengths.slice(0, 12).every((length) => length > 15_000) && lengths.at(-1)! >= 100, lengths.join())
  }
  const { list } = written({ text: 'word '.repeat(80_000), list: Array(131_000).fill('y') }) as { list: string[] }
  assert.ok(list.length > 60_000 && list[60_000] === 'y')
})
