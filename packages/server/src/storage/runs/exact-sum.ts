/** Sums in any order, exact, which can be taken back: Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997. */

/** Numbers of ascending size whose digits do not overlap. Their sum is exact. */
export type ExactSum = readonly number[]

/** A thousand of the largest numbers stay finite. A power of two changes no digit. */
const SCALE = 2 ** -10

export function addExactly(sum: ExactSum, number: number): ExactSum {
  const parts: number[] = []
  let carried = number * SCALE
  for (const part of sum) {
    const [large, small] = Math.abs(part) > Math.abs(carried) ? [part, carried] : [carried, part]
    carried = large + small
    const lost = small - (carried - large)
    if (lost !== 0) parts.push(lost)
  }
  return carried === 0 ? parts : [...parts, carried]
}

export function meanOf(sum: ExactSum, count: number): number {
  return rounded(sum) / count / SCALE
}

function rounded(sum: ExactSum): number {
  const parts = [...sum]
  let total = parts.pop() ?? 0
  let lost = 0
  while (parts.length > 0 && lost === 0) {
    const part = parts.pop() ?? 0
    const next = total + part
    lost = part - (next - total)
    total = next
  }
  // Half of a last digit is rounded to even, unless what follows is on the same side.
  const twice = total + lost * 2
  const isHalf = lost !== 0 && twice - total === lost * 2
  return isHalf && Math.sign(lost) === Math.sign(parts.at(-1) ?? 0) ? twice : total
}
