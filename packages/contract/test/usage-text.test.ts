import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costWords, spentWords, tokensText, tokenWords } from '../src/runs/run-text.ts'

const shown = (value: number) => `$${value}`

test('a cost is exact, estimated, at least what is known, or unknown; tokens with a cost of zero were free', () => {
  const words = (cost: number, estimatedCost: number | null, unpricedCalls: number, totalTokens = 10) =>
    costWords({ usage: { cost, totalTokens }, estimatedCost, unpricedCalls }, shown)
  assert.deepEqual(
    [words(0.1, null, 0), words(0.1, 0.2, 0), words(0, 0.2, 0), words(0, null, 0)],
    ['$0.1', '≈ $0.3', '≈ $0.2', '$0'],
  )
  assert.deepEqual([words(0.1, null, 1), words(0.1, 0.2, 3)], ['at least $0.1', 'at least $0.3'])
  assert.deepEqual([words(0, null, 1), words(0, null, 0, 0), words(0, null, 2, 0)], ['unknown', 'unknown', 'unknown'])
})

test('a measured sum without calls is zero, and tokens that nobody recorded are unknown', () => {
  assert.deepEqual(
    [spentWords(0, 0, shown), spentWords(0, 2, shown), spentWords(3, 2, shown)],
    ['$0', 'unknown', 'at least $3'],
  )
  assert.deepEqual([tokenWords(0, String), tokenWords(7, String)], ['unknown', '7'])
  assert.deepEqual([tokensText(0, String), tokensText(7, String)], ['tokens unknown', '7 tokens'])
})
