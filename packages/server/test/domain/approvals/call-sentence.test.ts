/** The sentence of a request, from its input, its policy's condition and its policy's template. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approveText } from '@tacho/contract/approvals/sentence-text.ts'
import type { SentencePart } from '@tacho/contract/approvals/call-sentence.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { templateFault } from '@tacho/contract/policies/call-template.ts'
import { parseRecorded } from '@tacho/contract/record/json-text.ts'
import { callSentence, type AskingTexts } from '../../../src/domain/approvals/call-sentence.ts'

const marked = (sentence: readonly SentencePart[]): string =>
  sentence.map(({ kind, text }) => (kind === 'amount' ? `**${text}**` : text)).join('')

function sentence(toolName: string, input: object | string, asking: Partial<AskingTexts> = {}): string {
  const json = typeof input === 'string' ? input : JSON.stringify(input)
  const decision = parseRecorded(`{"input":${json}}`) as Record<string, unknown>
  return marked(callSentence(toolName, decision, { condition: '', template: null, ...asking }))
}

const REFUND = { order_id: 'A-74932', item: 'road bike', amount: 917, currency: 'EUR' }

test('an amount leads, then identifiers, then short texts', () => {
  assert.equal(sentence('refund', REFUND), 'Refund **917 EUR** · A-74932 · road bike')
  assert.equal(sentence('mcp__shop__refundPayment', REFUND), 'Refund payment **917 EUR** · A-74932 · road bike')
  assert.equal(sentence('cancel_reservation', { reservation_id: 'M20IZO' }), 'Cancel reservation · M20IZO')
  assert.equal(
    sentence('send_certificate', { user_id: 'mei_brown_7075', amount: 200 }),
    'Send certificate **200** · mei_brown_7075',
  )
  // A text that is not a tool name is not changed.
  assert.equal(sentence('<img src=/x.png>', {}), '<img src=/x.png>')
  const bags = { reservation_id: 'YAX4DR', total_baggages: 2, payment_id: 'credit_card_4' }
  assert.equal(sentence('update_reservation_baggages', bags), 'Update reservation baggages · YAX4DR · credit_card_4')
})

test('numbers stay as recorded: nothing is rounded or converted', () => {
  assert.equal(sentence('refund', { amount: 12500.5, currency: 'eur' }), 'Refund **12,500.50 EUR**')
  assert.equal(sentence('refund', { amount_cents: 91700 }), 'Refund **91,700 cents**')
  assert.equal(sentence('refund', { refundAmountEur: 5 }), 'Refund **5 EUR**')
  assert.equal(sentence('refund', { amount: { value: 917, currency: 'EUR' } }), 'Refund **917 EUR**')
  assert.equal(sentence('refund', '{"amount":1e400}'), 'Refund **1e400**')
  assert.equal(sentence('refund', '{"amount":9007199254740993.25}'), 'Refund **9007199254740993.25**')
  const long = sentence('refund', `{"amount":${'9'.repeat(100_000)}}`)
  assert.ok(long.length < 100 && long.includes('…'))
})

test('what the condition names comes first, and several amounts of a list are all there', () => {
  const asking = { condition: 'tool.input.payment.quantity > 3.0 && tool.input["to"] != "x" && tool.input.force' }
  const input = { item: 'a', payment: { quantity: 5 }, note: 'hello', to: 'ana@example.com', force: true }
  assert.equal(sentence('buy', input, asking), 'Buy **quantity 5** · ana@example.com · force true · a')
  // A field also counts if a method or a loop reads it. A text that only looks like a field does not.
  const mail = { subject: 'Hello', cc: 'b@example.com', body: 'x'.repeat(100), items: [{ size: 3 }, { size: 4 }] }
  const starts = { condition: 'tool.input.subject.startsWith("Hel")' }
  assert.equal(sentence('send', mail, starts), 'Send · Hello · b@example.com')
  const loop = { condition: 'tool.input.items.exists(i, i.size > 3.0)' }
  assert.equal(sentence('send', mail, loop), 'Send **size 3 + 4** · Hello · b@example.com')
  const quoted = { condition: 'tool.input.cc != "tool.input.subject"' }
  assert.equal(sentence('send', { ...mail, cc: 'Ana' }, quoted), 'Send · Ana · Hello')
  const payments = { payment_methods: [{ amount: 250 }, { amount: 5 }] }
  assert.equal(sentence('book', payments), 'Book **250 + 5**')
})

test('only the tool, where nothing is known of the input; a command is shown as one', () => {
  assert.equal(marked(callSentence('refund', null, null)), 'Refund')
  assert.equal(sentence('Bash', { command: 'rm -rf /' }), 'Bash · $ rm -rf /')
  assert.equal(sentence('refund', { card: '[masked:card]', note: 'x'.repeat(500) }), 'Refund')
  assert.equal(sentence('___', {}), '___')
  assert.equal(sentence('refund', '"text"'), 'Refund · text')
})

test('a template says how a request reads, and which part the buttons name', () => {
  const template = 'Refund **{amount} {currency}** for {order_id} to {to.name}'
  const input = { ...REFUND, to: { name: 'Ana' } }
  assert.equal(sentence('refund_payment', input, { template }), 'Refund **917 EUR** for A-74932 to Ana')
  assert.equal(sentence('refund_payment', REFUND, { template }), 'Refund **917 EUR** for A-74932 to (no to.name)')
  assert.equal(sentence('r', REFUND, { template: 'Pay {amount} back' }), 'Pay **917** back')
  // Placeholders inside values are not replaced.
  const harm = { amount: '**{currency}**', order_id: '{amount}' }
  assert.equal(sentence('r', harm, { template: '{amount} {order_id}' }), '****{currency}**** {amount}')
  assert.equal(
    sentence('r', { list: [{ a: 1 }] }, { template: '{list.0.a} {__proto__} {list.length}' }),
    '1 (no __proto__) 1',
  )
  // An invalid template, which an older service or an import may have stored, is ignored.
  assert.equal(sentence('refund', REFUND, { template: '{amount' }), 'Refund **917 EUR** · A-74932 · road bike')
})

test('a template is checked before it is saved', () => {
  assert.equal(templateFault('Refund **{amount} {currency}** · {order.id}'), null)
  for (const [template, fault] of [
    ['Refund', /names no field/],
    [' ', /says nothing/],
    ['{amount', /brace/],
    ['amount} {a}', /brace/],
    ['{}', /no field/],
    ['{a b}', /no field/],
    ['{a..b}', /no field/],
    ['**{a}', /twice/],
    ['**{a}** **{b}**', /twice/],
    ['{a}\n', /do not show/],
    [`{a} ${String.fromCodePoint(0x202e)}`, /do not show/],
    [`{a}${'x'.repeat(LIMITS.policyTemplateChars)}`, /more than 200/],
    ['{a}'.repeat(LIMITS.policyTemplateFields + 1), /more than 10/],
  ] as const) {
    assert.match(templateFault(template) ?? '', fault, template)
  }
})

test('a button says what it approves', () => {
  const decision = { input: REFUND }
  assert.equal(approveText(callSentence('refund', decision, null)), 'Approve 917 EUR')
  const cancel = { input: { reservation_id: 'M20IZO' } }
  assert.equal(approveText(callSentence('cancel_reservation', cancel, null)), 'Approve: cancel reservation')
  assert.equal(approveText([]), 'Approve')
})
