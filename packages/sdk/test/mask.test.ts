import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createMask, type MaskingOptions } from '../src/mask.ts'

const ALL: MaskingOptions = { email: true, cardNumber: true, phone: true, iban: true }
const masked = (value: unknown, options: MaskingOptions = {}): unknown =>
  JSON.parse(createMask(options).json(JSON.stringify(value)))

const SECRETS = [
  'sk-proj-abcdefghijklmnopqrstuvwx',
  'sk-ant-api03-abcdefghijklmnop_qrs',
  'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
  'whsec_abcdefghijklmnopqrstuvwxyz',
  'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
  'github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz',
  'glpat-abcdefghijklmnopqrst',
  'xoxb-1234567890-abcdefghij',
  'AKIAIOSFODNN7EXAMPLE',
  'AIzaSyA1234567890abcdefghijklmnopqrstuv',
  'npm_abcdefghijklmnopqrstuvwxyz0123456789',
  'tacho_k3y1d_abcdefghijklmnopqrstuvwxyz0123456789',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
]

test('well-known forms of secrets are masked wherever they stand in a text', () => {
  for (const secret of SECRETS) {
    for (const text of [secret, `use ${secret} now`, `"${secret}"`, `key=${secret}&x=1`, `\n${secret}\n`]) {
      const result = masked({ note: [text] }) as { note: string[] }
      assert.ok(!result.note[0]?.includes(secret), text)
      assert.match(result.note[0] ?? '', /\[masked:credential\]/)
    }
  }
})

test('a private key is masked to its end, and to the end of the text when it has none', () => {
  const key = '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc-def\n'
  const { whole, open } = masked({ whole: `a ${key}-----END RSA PRIVATE KEY----- b`, open: `a ${key}` }) as Record<
    string,
    string
  >
  assert.doesNotMatch(`${whole}${open}`, /MIIEow/)
  assert.match(whole ?? '', / b$/)
})

test('headers, addresses and assignments lose only the secret', () => {
  assert.deepEqual(
    masked([
      'Authorization: Bearer abcdefghijkl.mnop',
      'postgres://app:hunter2@db/prod',
      'password=hunter2 user=ada',
      '{"apiKey":"abc","user":"ada"}',
      'access_token: abc; user: ada',
    ]),
    [
      'Authorization: [masked:credential]',
      'postgres://app:[masked:credential]@db/prod',
      'password=[masked:credential] user=ada',
      '{"apiKey":"[masked:credential]","user":"ada"}',
      'access_token: [masked:credential]; user: ada',
    ],
  )
})

test('values under the names of secrets are masked, whatever they are; other names keep theirs', () => {
  const secret = {
    password: 'a',
    'X-API-Key': 'b',
    client_secret: { deep: 1 },
    refreshToken: ['c'],
    Cookie: 'd',
    auth: 'e',
    privateKey: 12,
  }
  assert.deepEqual(
    Object.values(masked(secret) as object),
    Object.keys(secret).map(() => '[masked:credential]'),
  )
  const plain = {
    usage: { promptTokens: 12, totalTokens: 15 },
    author: 'x',
    maxTokens: 3,
    password: null,
    hasSecret: true,
  }
  assert.deepEqual(masked(plain), plain)
})

test('names of your own ignore case and separators', () => {
  assert.deepEqual(masked({ 'Customer-Number': 7, customer: 8 }, { keys: ['customerNumber'] }), {
    'Customer-Number': '[masked:credential]',
    customer: 8,
  })
})

test('personal data is masked only when asked for, and only when the checksum is right', () => {
  const data = {
    email: 'write to ada.lovelace+x@example.co.uk now',
    card: 'card 4111 1111 1111 1111, not 4111 1111 1111 1112',
    number: 4111111111111111,
    iban: 'DE89 3704 0044 0532 0130 00 but not DE89 3704 0044 0532 0130 01',
    phone: 'call +49 (0)30 123456-78 or 415-555-2671, order 12345',
  }
  assert.deepEqual(masked(data), data)
  const each = { email: 'email', card: 'cardNumber', number: 'cardNumber', iban: 'iban', phone: 'phone' }
  const found = Object.entries(each).map(([field, option]) => masked(data[field as 'iban'], { [option]: true }))
  assert.deepEqual(found, [
    'write to [masked:email] now',
    'card [masked:card], not 4111 1111 1111 1112',
    '[masked:card]',
    '[masked:iban] but not DE89 3704 0044 0532 0130 01',
    'call [masked:phone] or [masked:phone], order 12345',
  ])
})

test('patterns and a function of your own extend it; off means off', () => {
  assert.deepEqual(masked({ a: 'order A-123 and A-456' }, { patterns: [/A-\d+/] }), {
    a: 'order [masked] and [masked]',
  })
  assert.deepEqual(masked({ a: 'ada' }, { custom: (text) => text.toUpperCase() }), { A: 'ADA' })
  assert.deepEqual(masked({ password: 'a' }, { credentials: false }), { password: 'a' })
})

test('whatever the first look passes over, the rules would have left alone', () => {
  const words = [
    ...SECRETS,
    'password',
    'token',
    'auth',
    '://a:b@c',
    '4111111111111111',
    'a@b.co',
    '+4930123456',
    'x',
    ' ',
    '"',
    ':',
    '\\',
    '\n',
  ]
  const text = fc
    .array(fc.oneof(fc.constantFrom(...words), fc.string({ unit: 'binary' })), { maxLength: 6 })
    .map((parts) => parts.join(''))
  const quick = createMask(ALL)
  // A custom function makes every text take the long way; this one changes nothing.
  const thorough = createMask({ ...ALL, custom: (found) => found })
  fc.assert(
    fc.property(fc.dictionary(text, fc.oneof(text, fc.integer(), fc.array(text))), (payload) => {
      const json = JSON.stringify(payload)
      assert.deepEqual(JSON.parse(quick.json(json)), JSON.parse(thorough.json(json)))
    }),
    { numRuns: 500 },
  )
})

test('masking twice changes nothing more', () => {
  const once = createMask(ALL)
  for (const text of [...SECRETS, 'password=hunter2', 'Bearer abcdefghijklmnop', 'a@b.co']) {
    assert.equal(once.text(once.text(text)), once.text(text))
  }
})

test('hostile texts take linear time', () => {
  // Ten times the text may take far more than ten times as long on a busy machine, but never a hundred times.
  const pieces = [
    'a',
    'eyJ',
    '-eyJ',
    'sk-',
    '@',
    'a@',
    'a.',
    '1 ',
    '1',
    '://a:',
    'token=',
    '-----BEGIN PRIVATE KEY-----',
    '+1 ',
    'DE11 ',
    'Bearer ',
    ':',
    '"',
  ]
  const mask = createMask(ALL)
  for (const piece of pieces) {
    const time = (size: number): number => {
      const text = piece.repeat(Math.ceil(size / piece.length))
      const times = [1, 2, 3].map(() => {
        const begun = performance.now()
        mask.text(text)
        return performance.now() - begun
      })
      return Math.min(...times)
    }
    time(2_000)
    const [small, large] = [time(20_000), time(200_000)]
    assert.ok(large < Math.max(small, 5) * 60, `${piece}: ${small} ms, then ${large} ms`)
  }
})
