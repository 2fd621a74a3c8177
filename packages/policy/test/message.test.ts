import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { decide } from '../src/decide.ts'
import { POLICY_LIMITS } from '../src/limits.ts'
import { messageOf, purposeOf, withMessage } from '../src/message.ts'

const vectors = JSON.parse(readFileSync(new URL('../vectors/messages.json', import.meta.url), 'utf8')) as {
  description: string | null
  message: string | null
}[]

test('a message is what follows the first line that begins with "Message:", as one line', () => {
  for (const { description, message } of vectors)
    assert.equal(messageOf(description), message, JSON.stringify(description))
  assert.equal(messageOf(7 as unknown as string), null)
})

test('a message has at most 500 characters', () => {
  const most = POLICY_LIMITS.messageChars
  assert.equal(messageOf(`Message: ${'😀'.repeat(most)}`), '😀'.repeat(most))
  assert.equal(messageOf(`Message: ${'😀'.repeat(most + 1)}`), `${'😀'.repeat(most - 1)}…`)
})

test('purpose and message become one description, and are found again', () => {
  for (const purpose of [null, 'Refunds.', 'Two\nlines.']) {
    for (const message of [null, 'over 500 needs finance: ask ada']) {
      const description = withMessage(purpose, message)
      assert.deepEqual([purposeOf(description), messageOf(description)], [purpose, message])
    }
  }
  assert.equal(withMessage(null, ' '), null)
})

test('a match says what its policy says', () => {
  const policy = { policyId: 'p', name: 'p', version: '1', condition: 'true', severity: 'HIGH', action: 'BLOCK' }
  const said = (description?: string) =>
    decide([{ ...policy, ...(description !== undefined && { description }) }], { tool: { name: 't' }, now: 0 })
      .matched[0]
  assert.equal(said('For money.\nMessage: ask ada')?.message, 'ask ada')
  assert.ok(!Object.hasOwn(said('For money.') ?? {}, 'message'))
  assert.ok(!Object.hasOwn(said() ?? {}, 'message'))
})
