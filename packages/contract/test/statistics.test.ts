/** Statistics of verdicts: intervals cover the true value as often as they claim, and noise does not count as a difference. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  areMeansDifferent,
  cohenKappa,
  differenceP,
  failedText,
  failureComparison,
  meanMargin,
  neededEach,
  shareInterval,
} from '../src/runs/statistics.ts'

const near = (actual: number, expected: number, within: number) =>
  assert.ok(Math.abs(actual - expected) <= within, `${actual} is not ${expected}`)

/** The probability of each count of `whole`, exactly. */
function binomial(whole: number, share: number): number[] {
  const probabilities = [(1 - share) ** whole]
  for (let k = 1; k <= whole; k++) {
    probabilities.push((probabilities[k - 1]! * (whole - k + 1) * share) / (k * (1 - share)))
  }
  return probabilities
}

/** A generator that gives the same numbers each time. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

test('intervals of shares are those of R', () => {
  // binom::binom.confint(x, n, methods = "wilson")
  for (const [part, whole, low, high] of [
    [4, 30, 0.0531, 0.2968],
    [3, 30, 0.0346, 0.2562],
    [0, 10, 0, 0.2775],
    [10, 10, 0.7225, 1],
    [31, 300, 0.0738, 0.1428],
  ] as const) {
    const interval = shareInterval({ part, whole })
    near(interval[0], low, 0.0002)
    near(interval[1], high, 0.0002)
  }
  assert.deepEqual(shareInterval({ part: 0, whole: 0 }), [0, 1])
})

test('the interval of a share holds the true share in about 95 of 100 cases, and never in fewer than 83', () => {
  const coverages = [10, 30, 100, 300].flatMap((whole) =>
    [0.02, 0.1, 0.3, 0.5, 0.9].map((share) =>
      binomial(whole, share).reduce((sum, probability, part) => {
        const [low, high] = shareInterval({ part, whole })
        return low <= share && share <= high ? sum + probability : sum
      }, 0),
    ),
  )
  assert.ok(Math.min(...coverages) > 0.83, String(coverages))
  near(coverages.reduce((sum, one) => sum + one, 0) / coverages.length, 0.955, 0.01)
})

test('of 2,000 simulated samples, 93 to 97 % have the true share and the true mean in their interval', () => {
  const random = randomOf(42)
  for (const share of [0.05, 0.1, 0.3, 0.5, 0.8]) {
    for (const whole of [100, 300]) {
      let [shares, means] = [0, 0]
      for (let at = 0; at < 2_000; at++) {
        const part = Array.from({ length: whole }, random).filter((one) => one < share).length
        const [low, high] = shareInterval({ part, whole })
        if (low <= share && share <= high) shares++
        // Costs and lengths: from 1 to 1 + 10 share, most of them small.
        const values = Array.from({ length: whole }, () => 1 + 10 * share * random() ** 2)
        const sum = values.reduce((a, b) => a + b, 0)
        const margin = meanMargin({ count: whole, sum, squares: values.reduce((a, b) => a + b ** 2, 0) })
        if (Math.abs(sum / whole - (1 + (10 * share) / 3)) <= margin!) means++
      }
      for (const held of [shares, means]) assert.ok(held >= 1_860 && held <= 1_940, `${held} for ${share} of ${whole}`)
    }
  }
})

test('kappa is that of published examples, and undefined where chance explains all', () => {
  const pairsOf = (table: readonly (readonly number[])[]) =>
    table.flatMap((row, one) => row.flatMap((count, other) => Array(count).fill([String(one), String(other)])))
  // Wikipedia, "Cohen's kappa": 50 applications for a grant, and its two tables with equal agreement.
  const grants = cohenKappa(pairsOf([[20, 5], [10, 15]])) // prettier-ignore
  assert.equal(grants.same, 35)
  near(grants.kappa!, 0.4, 1e-9)
  near(cohenKappa(pairsOf([[45, 15], [25, 15]])).kappa!, 0.1304, 0.0001) // prettier-ignore
  near(cohenKappa(pairsOf([[25, 35], [5, 35]])).kappa!, 0.2593, 0.0001) // prettier-ignore
  // Altman, "Practical Statistics for Medical Research" (1991), 403: 85 xeromammograms, four categories.
  const mammograms = cohenKappa(pairsOf([[21, 12, 0, 0], [4, 17, 1, 0], [3, 9, 15, 2], [0, 0, 0, 1]])) // prettier-ignore
  near(mammograms.kappa!, 0.473, 0.001)
  assert.equal(mammograms.same, 54)
  assert.deepEqual(cohenKappa([['yes', 'yes'], ['yes', 'yes']]), { same: 2, kappa: null, margin: null }) // prettier-ignore
  assert.equal(cohenKappa([]).kappa, null)
  assert.equal(cohenKappa([['yes', 'no']]).margin, null)
})

test('the interval of a mean holds the true mean in about 95 of 100 cases', () => {
  const random = randomOf(7)
  for (const count of [2, 3, 5, 8, 30]) {
    let held = 0
    for (let at = 0; at < 4_000; at++) {
      // Sums of twelve are nearly normal, around 0.
      const values = Array.from({ length: count }, () => Array.from({ length: 12 }, random).reduce((a, b) => a + b, -6))
      const sum = values.reduce((a, b) => a + b, 0)
      const margin = meanMargin({ count, sum, squares: values.reduce((a, b) => a + b ** 2, 0) })
      if (Math.abs(sum / count) <= margin!) held++
    }
    near(held / 4_000, 0.95, 0.015)
  }
  assert.equal(meanMargin({ count: 1, sum: 3, squares: 9 }), null)
  assert.equal(meanMargin({ count: 3, sum: 30, squares: 300 }), 0)
})

test('the probability is that of R, also for many runs', () => {
  // fisher.test(matrix(c(a, b - a, c, d - c), 2))$p.value; the last: prop.test without correction
  for (const [part, whole, otherPart, otherWhole, expected] of [
    [4, 30, 3, 30, 1],
    [31, 300, 30, 300, 1],
    [8, 10, 1, 10, 0.00548],
    [43, 100, 14, 100, 0.00001],
    [1, 1, 0, 1, 1],
    [5_200, 20_000, 5_000, 20_000, 0.0219],
  ] as const) {
    near(differenceP({ part, whole }, { part: otherPart, whole: otherWhole }), expected, 0.0005)
  }
  for (const none of [0, 5]) assert.equal(differenceP({ part: none, whole: 5 }, { part: none, whole: 5 }), 1)
  assert.equal(differenceP({ part: 0, whole: 0 }, { part: 3, whole: 5 }), 1)
})

test('of two versions that fail alike, at most one in twenty is said to differ', () => {
  for (const [whole, share] of [
    [30, 0.1],
    [30, 0.4],
    [80, 0.2],
  ] as const) {
    const probabilities = binomial(whole, share)
    let wrong = 0
    probabilities.forEach((one, part) =>
      probabilities.forEach((other, otherPart) => {
        if (differenceP({ part, whole }, { part: otherPart, whole }) <= 0.05) wrong += one * other
      }),
    )
    assert.ok(wrong <= 0.05, `${wrong}`)
  }
})

test('as many runs as are named show the difference four times of five', () => {
  const [one, other] = [
    { part: 43, whole: 100 },
    { part: 14, whole: 100 },
  ]
  const whole = neededEach(one, other)!
  const [ours, theirs] = [binomial(whole, 0.43), binomial(whole, 0.14)]
  let shown = 0
  ours.forEach((a, part) =>
    theirs.forEach((b, otherPart) => {
      if (differenceP({ part, whole }, { part: otherPart, whole }) <= 0.05) shown += a * b
    }),
  )
  near(shown, 0.75, 0.06)
  assert.equal(neededEach({ part: 1, whole: 10 }, { part: 2, whole: 20 }), null)
})

test('the sentence says a difference only where there is one, over one base', () => {
  const version = (name: string, failed: number, ended: number) => ({
    name,
    failed,
    completed: ended - failed,
    cancelled: 0,
  })
  assert.equal(
    failureComparison(version('Version 2', 4, 30), version('version 1', 3, 30)),
    'No difference in failures that these numbers can show (p ≈ 1): Version 2 failed in 4 of 30 ended runs (13 %, likely 5 to 30 %), ' +
      'and 3 of 30 (10 %, likely 3 to 26 %) of version 1. About 1,500 runs of each would show a difference of this size.',
  )
  assert.match(
    failureComparison(version('Version 2', 31, 300), version('version 1', 30, 300))!,
    /^No difference in failures that these numbers can show \(p ≈ 1\): .* 31 of 300 ended runs \(10 %, likely 7 to 14 %\), .* About [\d,]+ runs of each would/,
  )
  assert.equal(
    failureComparison(version('Version 2', 43, 100), version('version 1', 14, 100)),
    'Version 2 fails more often than version 1: 43 of 100 ended runs (43 %, likely 34 to 53 %), ' +
      'and 14 of 100 (14 %, likely 9 to 22 %) of version 1; p < 0.001.',
  )
  assert.match(
    failureComparison(version('A', 0, 40), version('B', 12, 40))!,
    /^A fails less often than B: .* p < 0\.001\.$/,
  )
  assert.match(failureComparison(version('A', 2, 20), version('B', 3, 30))!, /^No difference .*\(p ≈ 1\): [^.]*\.$/)
  assert.equal(failedText(version('A', 4, 30)), '4 of 30 ended runs (13 %, likely 5 to 30 %) failed')
  assert.equal(failureComparison(version('A', 0, 0), version('B', 3, 30)), null)
})

test('two means differ only beyond their spread, as R says', () => {
  const sums = (values: readonly number[]) => ({
    count: values.length,
    sum: values.reduce((all, one) => all + one, 0),
    squares: values.reduce((all, one) => all + one ** 2, 0),
  })
  // t.test(c(1, 2, 3, 4, 5), c(3, 4, 5, 6, 7)): p = 0.08; with 5 to 9: p = 0.004
  assert.equal(areMeansDifferent(sums([1, 2, 3, 4, 5]), sums([3, 4, 5, 6, 7])), false)
  assert.equal(areMeansDifferent(sums([1, 2, 3, 4, 5]), sums([5, 6, 7, 8, 9])), true)
  assert.equal(areMeansDifferent(sums([2, 2]), sums([3, 3, 3])), true)
  assert.equal(areMeansDifferent(sums([2, 2]), sums([2, 2, 2])), false)
  assert.equal(areMeansDifferent(sums([2]), sums([3, 3, 3])), false)
})
