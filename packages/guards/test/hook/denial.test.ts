/** The messages of a refused call, for the agent and for the person who uses it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ToolBlockedError, type BlockCode } from '@tacho/sdk'
import { callInShort, denialText } from '../../src/hook/denial.ts'

const call = (input: unknown, toolName = 'Bash') => ({ toolName, input, riskSignals: [] })

function blocked(code: BlockCode, policyMessage: string | null, reason: string | null = 'policy "secrets"') {
  const none = { inputHash: null, approvalId: null, decisionReason: null }
  const policyIds = reason === null ? [] : ['p-1']
  const rule = policyMessage === null ? '' : ` The policy says: ${policyMessage}`
  return new ToolBlockedError({ code, toolName: 'Bash', policyIds, policyMessage, reason, ...none }, `Not run.${rule}`)
}

test('a denial names Tacho, the policy, the call, and what the policy says, once', () => {
  const env = call({ command: 'cat .env' })
  assert.equal(
    denialText(blocked('policy', 'Secrets stay here', 'policy "secrets": Secrets stay here'), env),
    'Tacho: policy secrets denied `cat .env`: Secrets stay here. Not run.',
  )
  assert.equal(denialText(blocked('policy', null), env), 'Tacho: policy secrets denied `cat .env`. Not run.')
  assert.equal(
    denialText(blocked('policy', null, 'unknown words'), env),
    'Tacho: policy p-1 denied `cat .env`. Not run.',
  )
  assert.equal(
    denialText(blocked('approval_expired', 'Ask first.'), env),
    'Tacho: policy secrets asks a person before `cat .env`: Ask first. Not run.',
  )
  assert.equal(denialText(blocked('not_configured', null, null), env), 'Tacho did not allow `cat .env`. Not run.')
})

test('a call is named by its command, its file, or the beginning of its input, in visible characters', () => {
  assert.equal(callInShort(call({ file_path: '/srv/.env', content: 'x' }, 'Write')), '`/srv/.env`')
  assert.equal(callInShort(call({ query: 'a' }, 'Search')), '`Search {"query":"a"}`')
  assert.equal(callInShort(call('text', 'Search')), '`Search text`')
  const hidden = `ls\u001b[2K\n\u202erm${String.fromCodePoint(0xe0041)}`
  assert.equal(callInShort(call({ command: hidden })), '`ls\\u{1b}[2K\\u{a}\\u{202e}rm\\u{e0041}`')
  assert.equal(callInShort(call({ command: 'x'.repeat(500) })), `\`${'x'.repeat(100)}…\``)
})
