import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../contract/test/any-character.ts'
import { messageTemplate } from '../../../src/domain/issues/message-template.ts'

const becomes = (cases: Record<string, string>) => {
  for (const [message, template] of Object.entries(cases)) assert.equal(messageTemplate(message), template)
}

test('numbers, durations, ids, digests and UUIDs are replaced', () => {
  becomes({
    'no answer after 3000 ms': 'no answer after …',
    'no answer after 3000ms': 'no answer after …',
    'it took 1m30s': 'it took …',
    'order ord_4711 not found': 'order ord_… not found',
    'Order #4711 not found': 'Order #… not found',
    'request req_ruwyRTVXacLM failed': 'request req_… failed',
    '3f2a1b4c-abcd-4abc-8abc-0123456789ab missing': '… missing',
    'commit 9f86d081884c7d65 missing': 'commit … missing',
    'temperature -5.3 below -4': 'temperature … below …',
    'row 17 of 1,204 rows: [1, 2, 3]': 'row … of … rows: […]',
    'sk-abcd********wxyz is wrong': '… is wrong',
  })
})

test('dates, addresses, e-mail addresses and paths are replaced', () => {
  becomes({
    'expired on Mon, 23 Nov 2026 17:58:43 GMT': 'expired on …',
    '2026-11-23T17:58:43.123Z is in the past': '… is in the past',
    'connect ECONNREFUSED 10.0.0.12:5432': 'connect ECONNREFUSED …',
    'no customer ada@example.org at https://x.y/z?id=1': 'no customer … at …',
    "ENOENT: no such file or directory, open '/tmp/x-93/a.json'": 'ENOENT: no such file or directory, open …',
    'cannot read C:\\Users\\ada\\a.txt here': 'cannot read … here',
    'application/json and/or text/html': 'application/json and/or text/html',
  })
})

test('quoted data is replaced; quoted names in code and quoted sentences are read', () => {
  becomes({
    "Customer 'Ada' has no order": 'Customer … has no order',
    'city “Sankt Gallen” is not supported': 'city … is not supported',
    'Bestellung „4711“ fehlt': 'Bestellung … fehlt',
    'violates unique constraint "orders_pkey"': 'violates unique constraint orders_pkey',
    '{"message": "Order 5 was not found", "code": "not_found"}': 'message: Order … was not found, code: not_found',
    "Don't know the model's name": "Don't know the model's name",
  })
})

test('a number that says what went wrong stays', () => {
  becomes({
    'Request failed with status code 429': 'Request failed with status code 429',
    'HTTP/1.1 502 Bad Gateway': 'HTTP 502 Bad Gateway',
    '[Errno 111] Connection refused': '[Errno 111] Connection refused',
    'exit code 137': 'exit code 137',
    'E11000 duplicate key': 'E11000 duplicate key',
    'MCP error -32001: Request timed out': 'MCP error -32001: Request timed out',
  })
})

test('a template is short and well-formed, for any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 2_000 }), (message) => {
      const template = messageTemplate(message)
      assert.ok(template.length <= 160)
      assert.ok(template.isWellFormed())
    }),
  )
})

test('the time does not grow with the text, whatever it is made of', () => {
  const texts = ["'", '" ', "a'", '-', '1.', '([', '/a', 'a1', '_A', '{', '%'].map((part) => part.repeat(500_000))
  for (const text of texts) messageTemplate(text)
  const start = process.threadCpuUsage()
  for (const text of texts) messageTemplate(text)
  // Measure processor time, because other tests run at the same time.
  const { user, system } = process.threadCpuUsage(start)
  const spent = (user + system) / 1_000
  assert.ok(spent < 500, `${spent} ms for ${texts.length} texts of a million characters`)
})
