import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../contract/test/any-character.ts'
import { CARD_NUMBER, IBAN, maskNumbers } from '../src/recording/checksum.ts'
import { CREDENTIAL_FORMS, kindOfName, maskAssignments, MAYBE_FORM } from '../src/recording/credentials.ts'
import { createMask, loadChecksum, type MaskingOptions } from '../src/recording/mask.ts'

const ALL: MaskingOptions = { email: true, cardNumber: true, phone: true, iban: true }
const masked = (value: unknown, options: MaskingOptions = {}): unknown =>
  JSON.parse(createMask(options).json(JSON.stringify(value)))

// Clients load the checksum code shortly after they are created. These tests need it from the start.
await loadChecksum()

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

test('well-known forms of secrets are masked anywhere in a text', () => {
  for (const secret of SECRETS) {
    for (const text of [secret, `use ${secret} now`, `"${secret}"`, `key=${secret}&x=1`, `\n${secret}\n`]) {
      const result = masked({ note: [text] }) as { note: string[] }
      assert.ok(!result.note[0]?.includes(secret), text)
      assert.match(result.note[0] ?? '', /\[masked:credential\]/)
    }
  }
})

test('a private key is masked to its end, or to the end of the text', () => {
  const key = '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc-def\n'
  const { whole, open } = masked({ whole: `a ${key}-----END RSA PRIVATE KEY----- b`, open: `a ${key}` }) as Record<
    string,
    string
  >
  assert.doesNotMatch(`${whole}${open}`, /MIIEow/)
  assert.match(whole ?? '', / b$/)
})

test('in headers, addresses and assignments only the secret is masked', () => {
  assert.deepEqual(
    masked([
      'Authorization: Bearer abcdefghijkl.mnop',
      'postgres://app:hunter2@db/prod',
      'password=hunter2 user=ada',
      '{"apiKey":"abc","user":"ada"}',
      'access_token: abc; user: ada',
      'GET / HTTP/1.1\nCookie: sid=abc; theme=dark\nAccept: */*',
      'Set-Cookie: sid=abc; Path=/',
      'curl -H "Authorization: token abc" https://example.com/',
      'DB_PASS=hunter2 SMTP_PASSWORD="two words" HOME=/root',
      'Server=db;Uid=sa;Pwd=hunter2;Timeout=5',
      'pwd: hunter2, api key: abc',
      'https://abc@example.com/x and https://ada:p@ss@example.com',
      'http://auth:3000/login and ssh://git@example.com, the compass: north',
    ]),
    [
      'Authorization: [masked:credential]',
      'postgres://app:[masked:credential]@db/prod',
      'password=[masked:credential] user=ada',
      '{"apiKey":"[masked:credential]","user":"ada"}',
      'access_token: [masked:credential]; user: ada',
      'GET / HTTP/1.1\nCookie: [masked:credential]\nAccept: */*',
      'Set-Cookie: [masked:credential]',
      'curl -H "Authorization: [masked:credential]" https://example.com/',
      'DB_PASS=[masked:credential] SMTP_PASSWORD="[masked:credential]" HOME=/root',
      'Server=db;Uid=sa;Pwd=[masked:credential];Timeout=5',
      'pwd: [masked:credential], api key: [masked:credential]',
      'https://[masked:credential]@example.com/x and https://ada:[masked:credential]@example.com',
      'http://auth:3000/login and ssh://git@example.com, the compass: north',
    ],
  )
})

test('values of any type under names of secrets are masked; others are unchanged', () => {
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

test('usage counters are kept, and texts under the name tokens are masked', () => {
  const counters = {
    inputTokens: 12,
    totalTokens: 15,
    tokens: 3,
    maxTokens: '4,096',
    details: { cachedTokens: { read: 2 } },
  }
  assert.deepEqual(masked(counters), counters)
  assert.deepEqual(masked({ tokens: ['abc', 7], authTokens: { first: 'abc' }, apiKeys: ['abc'] }), {
    tokens: ['[masked:credential]', 7],
    authTokens: { first: '[masked:credential]' },
    apiKeys: '[masked:credential]',
  })
  const texts = ['total_tokens=12, max_tokens: 7', "{'total_tokens': 12}", 'tokens: 1,024.']
  assert.deepEqual(masked(texts), texts)
  assert.deepEqual(masked(['tokens=abc', 'tokens=12ab']), ['tokens=[masked:credential]', 'tokens=[masked:credential]'])
  const prose = 'basic understanding, Basic authentication'
  assert.equal(masked(prose), prose)
})

test('assignments are found in aligned texts, YAML, XML, headers and command lines', () => {
  const found: Record<string, string> = {
    'password:     S3 user: ada': 'password:     # user: ada',
    'PASSWORD      =      S3\nHOME=/root': 'PASSWORD      =      #\nHOME=/root',
    'tokens          =          S3': 'tokens          =          #',
    'Authorization: Digest username="u", response="S3"\nHost: x': 'Authorization: #\nHost: x',
    'curl -H "Authorization: OAuth a=\\"b\\", c=\\"S3\\"" https://x': 'curl -H "Authorization: #" https://x',
    'curl -H "Authorization: Basic czM=" https://x': 'curl -H "Authorization: #" https://x',
    'password: |\n  S3\n\n  S3\nuser: ada': 'password: #\nuser: ada',
    'password: >-\r\n  S3\r\nuser: ada': 'password: #\r\nuser: ada',
    '<password>S3</password><user>ada</user>': '<password>#</password><user>ada</user>',
    '<ns:apiKey><![CDATA[S3]]></ns:apiKey>': '<ns:apiKey>#</ns:apiKey>',
    'mysql --password S3 prod': 'mysql --password # prod',
    "run ['--password', 'S3', '--user']": "run ['--password', '#', '--user']",
    'curl -s -u admin:S3 https://x': 'curl -s -u admin:# https://x',
    'curl --user "admin:S3" https://x': 'curl --user "admin:#" https://x',
    'https://x/y?X-Amz-Signature=S3&z=1': 'https://x/y?X-Amz-Signature=#&z=1',
    'signing key: S3, encryption_key=S3': 'signing key: #, encryption_key=#',
  }
  for (const [text, expected] of Object.entries(found))
    assert.equal(masked(text), expected.replaceAll('#', '[masked:credential]'), text)
  const plain = [
    'Write it in <password> tags.',
    'docker run -u 1000:1000 x',
    'docker login --password-stdin --user ada',
    'pin: 4, sid: 7, if (passwords > 3)',
  ]
  assert.deepEqual(masked(plain), plain)
})

test('names of keys, pass codes and signatures are secrets; pin and sid are not', () => {
  const names = ['signingKey', 'encryption_key', 'passcode', 'pass-word', 'x-auth', 'bearer', 'X-Amz-Signature']
  for (const name of names) assert.deepEqual(masked({ [name]: 'S3' }), { [name]: '[masked:credential]' })
  const plain = { pin: 'a', sid: 'b', spin: 'c', forbearer: 'd', signature: 'e' }
  assert.deepEqual(masked(plain), plain)
})

test('a value beside its name may be called content or data, and an argument follows its option', () => {
  const mark = '[masked:credential]'
  assert.deepEqual(
    masked([
      { name: 'password', content: 'a' },
      { key: 'password', data: { b: 'c' } },
      { args: ['mysql', '--password', 'S3', 'prod'] },
      { role: 'tool', name: 'reset_password', content: 'done' },
    ]),
    [
      { name: 'password', content: mark },
      { key: 'password', data: mark },
      { args: ['mysql', '--password', mark, 'prod'] },
      { role: 'tool', name: 'reset_password', content: 'done' },
    ],
  )
})

test('a value beside its name is masked: in fields, in pairs and in lists of headers', () => {
  assert.deepEqual(
    masked({
      fields: [
        { name: 'password', value: 'a' },
        { Key: 'DB_PASS', Value: 'b' },
        { name: 'order', value: 'c' },
      ],
      headers: [
        ['Cookie', 'sid=1; x=2'],
        ['X-Api-Key', 'a'],
        ['Accept', 'b'],
      ],
      rawHeaders: ['Host', 'example.com', 'Authorization', 'a', 'X-Auth-Token', 'b', 'Set-Cookie', 'c'],
      required: ['password', 'email'],
    }),
    {
      fields: [
        { name: 'password', value: '[masked:credential]' },
        { Key: 'DB_PASS', Value: '[masked:credential]' },
        { name: 'order', value: 'c' },
      ],
      headers: [
        ['Cookie', '[masked:credential]'],
        ['X-Api-Key', '[masked:credential]'],
        ['Accept', 'b'],
      ],
      rawHeaders: [
        'Host',
        'example.com',
        'Authorization',
        '[masked:credential]',
        'X-Auth-Token',
        '[masked:credential]',
        'Set-Cookie',
        '[masked:credential]',
      ],
      required: ['password', 'email'],
    },
  )
})

test('JSON in a text is masked as JSON, also if it is encoded several times or cut', () => {
  const secret = { user: 'ada', password: 'my "own" pass, word', nested: { accessToken: ['a b'] } }
  const open = { user: 'ada', password: '[masked:credential]', nested: { accessToken: '[masked:credential]' } }
  let [given, expected]: [unknown, unknown] = [secret, open]
  for (let level = 0; level < 4; level++) {
    given = JSON.stringify({ arguments: given })
    expected = JSON.stringify({ arguments: expected })
    assert.deepEqual(masked({ text: given }), { text: expected })
    // A list with white space around it and escaped letters.
    const escaped = `  [${String(given).replaceAll('p', String.raw`\u0070`)}]\n`
    assert.ok(!JSON.stringify(masked({ text: escaped })).includes('own'), escaped)
  }
  // Not JSON as a whole, but the end of each value is found.
  for (let [level, part] = [0, JSON.stringify(secret)]; level < 3; level++) {
    const inside = String(masked(`The answer was ${part} for order 7`))
    assert.ok(!/own|pass,|a b/.test(inside), inside)
    assert.ok(inside.includes('ada') && inside.endsWith('for order 7'), inside)
    const cut = String(masked(part.slice(0, part.indexOf('word'))))
    assert.ok(cut.includes('ada') && !/own|pass,/.test(cut), cut)
    part = JSON.stringify({ arguments: part })
  }
  const plain = ' {"order": 1.0, "big": 9007199254740993, "note": "no password here"} '
  assert.equal(masked(plain), plain)
})

test('custom names ignore case and separators', () => {
  assert.deepEqual(masked({ 'Customer-Number': 7, customer: 8 }, { keys: ['customerNumber'] }), {
    'Customer-Number': '[masked:credential]',
    customer: 8,
  })
})

test('personal data is masked only if enabled, and only with a valid checksum', () => {
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

test('custom patterns and a custom function extend masking; it can be disabled', () => {
  assert.deepEqual(masked({ a: 'order A-123 and A-456' }, { patterns: [/A-\d+/] }), {
    a: 'order [masked] and [masked]',
  })
  assert.deepEqual(masked({ a: 'ada' }, { custom: (text) => text.toUpperCase() }), { A: 'ADA' })
  assert.deepEqual(masked({ password: 'a' }, { credentials: false }), { password: 'a' })
})

test('text that the first search skips contains nothing to mask', () => {
  const words = [
    ...SECRETS,
    'tokens',
    'pwd',
    'cookie',
    'name',
    'value',
    '=',
    '{',
    '}',
    '[',
    ']',
    ',',
    '4111-1111.1111\u00a01111',
    'DE89370400440532013000',
    String.raw`\u0070assword`,
    'password',
    'token',
    'auth',
    '<auth>',
    '</',
    '--otp',
    'passcode',
    'pass-word',
    'x-amz-signature',
    'signing key',
    'curl -u a:',
    '|',
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
    .array(fc.oneof(fc.constantFrom(...words), fc.string({ unit: anyCharacter })), { maxLength: 6 })
    .map((parts) => parts.join(''))
  const quick = createMask(ALL)
  // With a custom function, every text is parsed. This one changes nothing.
  const thorough = createMask({ ...ALL, custom: (found) => found })
  fc.assert(
    fc.property(fc.dictionary(text, fc.oneof(text, fc.integer(), fc.array(text))), (payload) => {
      const json = JSON.stringify(payload)
      assert.deepEqual(JSON.parse(quick.json(json)), JSON.parse(thorough.json(json)))
    }),
    { numRuns: 300 },
  )
})

/** For random texts: names of credentials, signs, values and pieces of them, in any order. */
const NAMES =
  'password passw Pass PWD secret api_key apiKey X-API-Key key Authorization auth author jwt otp cvc2 Cookie token tokens total_tokens bearer signature x-amz-signature user name value header content role compass spin passphrase signingKey private.key credential --password --auth --user -u curl https Basic Bearer tokenizer DB_PASS dbPass keyboard'.split(
    ' ',
  )
const SIGNS = [
  ...String.raw`: = := => ; , | > < </ // :// @ [ ] { } [[ ( - -- . ' " {" ": "," "} [" \" \\" \n \ `.split(' '),
  ' ',
  '\u00a0',
  '\n',
  '\u2028',
  '": "',
  '", "',
]
const VALUES =
  'hunter2 12 1,024 12ab true abcdefghijkl1234= sk-abcdefghijklmnopqrst AKIAIOSFODNN7EXAMPLE eyJhbGciOiJIUzI1NiJ9.eyJz ya29.abcdefghijklmnopqrst api pass'.split(
    ' ',
  )

test('the search skips nothing that the slow way, every rule on every text, would mask', () => {
  const piece = fc.oneof(fc.constantFrom(...NAMES), fc.constantFrom(...SIGNS), fc.constantFrom(...VALUES))
  const text = fc.array(piece, { minLength: 1, maxLength: 9 }).map((pieces) => pieces.join(''))
  const encoded = fc
    .tuple(fc.constantFrom(...NAMES), text)
    .map(([name, given]) => `got ${JSON.stringify({ [name]: given })} ok`)
  const leaf = fc.oneof(text, encoded, fc.constantFrom(...NAMES), fc.integer())
  const list = fc.array(leaf, { maxLength: 3 })
  const fields = fc.dictionary(fc.oneof(fc.constantFrom(...NAMES), text), fc.oneof(leaf, list), { maxKeys: 3 })
  const quick = createMask({})
  const slow = createMask({ custom: (given) => given })
  fc.assert(
    fc.property(fc.oneof(fields, fc.array(fc.oneof(leaf, list, fields), { maxLength: 3 })), (payload) => {
      const json = JSON.stringify({ payload })
      assert.deepEqual(JSON.parse(quick.json(json)), JSON.parse(slow.json(json)))
    }),
    { numRuns: 3_000 },
  )
})

test('texts that only speak of passwords and tokens are not searched again', () => {
  const mask = createMask({})
  const spoken =
    'The customer forgot the password; a token of "trust", he said, is the key. It used 1,204 tokens, cheap.'
  assert.equal(mask.touches(JSON.stringify({ messages: spoken, usage: { promptTokens: 12, total_tokens: 3 } })), false)
  assert.equal(mask.touches(JSON.stringify({ messages: `${spoken} password: x` })), true)
})

test('sentences and texts with quotes name nothing', () => {
  const [sentence, quoted] = [`a password ${'and more '.repeat(7)}`, 'the "password" of']
  assert.deepEqual(masked({ [sentence]: 1, [quoted]: 2 }), { [sentence]: 1, [quoted]: 2 })
  const long = `${'x'.repeat(80)}_password`
  assert.deepEqual(masked({ [long]: 1 }), { [long]: '[masked:credential]' })
})

test('masking twice has the same result as masking once', () => {
  const once = createMask(ALL)
  for (const text of [...SECRETS, 'password=hunter2', 'Bearer abcdefghijklmnop', 'a@b.co']) {
    assert.equal(once.text(once.text(text)), once.text(text))
  }
})

test('every pattern takes linear time: unbounded parts come last, or the pattern starts only at a word', () => {
  const sources = ['mask', 'credentials'].map((name) =>
    readFileSync(new URL(`../src/recording/${name}.ts`, import.meta.url), 'utf8'),
  )
  const literals = sources.flatMap(
    (source) => source.match(/(?<=^ *|= |\[)\/(?!\*)(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuy]*/gm) ?? [],
  )
  const built = [CARD_NUMBER.run, IBAN.run, ...CREDENTIAL_FORMS, MAYBE_FORM].map(({ source }) => `/${source}/g`)
  assert.ok(literals.length > 10)
  for (const pattern of [...literals, ...built]) {
    // Replace each escape and class by one letter.
    const plain = pattern
      .replace(/\/[a-z]*$/, '')
      .replace(/\\u[0-9a-f]{4}|\\p\{\w+\}|\\./g, 'x')
      .replace(/\[[^\]]*\]/g, 'x')
    const isPinned = plain.startsWith('/^') || plain.startsWith('/(?<!x|xx)((?:')
    const inner = /(?:[*+]|\{\d+,\})(?!(?:x\?)?\)*$)/.exec(isPinned ? '' : plain)
    assert.equal(inner, null, pattern)
  }
})

test('each character of a text is read a bounded number of times', () => {
  const words = String.raw`a 1 . : = " ' \ [ ] DE11- 4111. token password":" pwd\":\" <auth> </ | --otp curl -u token="\ cookie: {"a":" [{"password": tokens=1`
  const pieces = [...words.split(' '), ' ', '1 ', 'DE11 ']
  const piece = fc.constantFrom(...pieces)
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 2_000 }),
      (pieces, times) => {
        const text = pieces.join('').repeat(times)
        let chars = 0
        maskAssignments(text, (name) => {
          chars += name.length
          return kindOfName(name)
        })
        assert.ok(chars <= text.length, 'names')
        for (const form of [CARD_NUMBER, IBAN]) {
          chars = 0
          maskNumbers(text, {
            ...form,
            checking: (values) => {
              const isNumber = form.checking(values)
              return (from, to) => {
                chars += to - from
                return isNumber(from, to)
              }
            },
          })
          // Each group starts at most one candidate, with at most `maxChars` ends of at most `maxChars` characters.
          assert.ok(chars <= text.length * form.maxChars ** 2, 'numbers')
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('a number is found like by reading every part of a text alone', () => {
  const isCard = (digits: string): boolean => {
    const doubled = Array.from(digits, (digit, at) => ((digits.length - at) % 2 === 0 ? 2 : 1) * Number(digit))
    const sum = doubled.reduce((all, each) => all + (each > 9 ? each - 9 : each), 0)
    return sum % 10 === 0 && new Set(digits).size > 1
  }
  function slowly(text: string): string {
    for (let from = 0; from < text.length; from++) {
      for (let to = text.length; to > from; to--) {
        const part = text.slice(from, to)
        const digits = part.replaceAll(' ', '')
        const isWhole = /^\d.*\d$/.test(part) && !/\d$/.test(text.slice(0, from)) && !/^\d/.test(text.slice(to))
        if (isWhole && digits.length >= 13 && digits.length <= 19 && isCard(digits))
          return `${text.slice(0, from)}[masked:card]${slowly(text.slice(to))}`
      }
    }
    return text
  }
  const groups = fc.array(fc.stringMatching(/^[0-2]{1,7}$/), { minLength: 2, maxLength: 12 })
  fc.assert(
    fc.property(groups, (given) => {
      const text = given.join(' ')
      assert.equal(maskNumbers(text, CARD_NUMBER), slowly(text))
    }),
    { numRuns: 300 },
  )
})

/** The Python SDK reads the same file. */
const VECTORS = new URL('../../sdk-conformance/vectors/mask.json', import.meta.url)

test('the vectors for SDKs in all languages', () => {
  const vectors = JSON.parse(readFileSync(VECTORS, 'utf8')) as { name: string; input: unknown; output: unknown }[]
  assert.ok(vectors.length > 20)
  for (const { name, input, output } of vectors) {
    assert.deepEqual(masked({ note: [input] }), { note: [output] }, name)
  }
})

test('brackets that are never closed are searched in linear time', () => {
  const ofLength = (length: number) => `password ${'[{"'.repeat(length)}`
  const time = (text: string) => {
    const start = process.threadCpuUsage()
    createMask({}).text(text)
    // Processor time, because other tests run at the same time.
    const { user, system } = process.threadCpuUsage(start)
    return (user + system) / 1_000
  }
  time(ofLength(1_000))
  const [short, long] = [time(ofLength(20_000)), time(ofLength(200_000))]
  assert.ok(long < 100 * (short + 10), `${short} and ${long} ms`)
})
