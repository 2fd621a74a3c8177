/**
 * A sketch with relative error (DDSketch; Masson, Rim, Lee, VLDB 2019): bounds of neighbouring buckets differ by a constant
 * factor, so a percentile of any sum of rows is as exact as that of one. Before, buckets were wider: their numbers are below
 * `SKETCH`, and percentiles that count them are marked.
 */
const ERROR = 0.009
const FACTOR = (1 + ERROR) / (1 - ERROR)
const LOG_FACTOR = Math.log(FACTOR)

/** Buckets of the sketch are numbered from here; this one has what is shorter than a microsecond. */
export const SKETCH = 1_000
/** The bucket that ends at 1 ms. */
const MILLISECOND = 2_000
const SHORTEST_MS = 0.001

const FORMER_PER_DOUBLING = 4

export function bucketOf(latencyMs: number): number {
  return latencyMs < SHORTEST_MS ? SKETCH : MILLISECOND + Math.ceil(Math.log(latencyMs) / LOG_FACTOR)
}

/** At most 0.9 % from each latency of the bucket. */
export function latencyAt(bucket: number): number {
  return bucket === SKETCH ? 0 : (2 * FACTOR ** (bucket - MILLISECOND)) / (FACTOR + 1)
}

/** In thousandths of a bucket: half a former one, and the place in its bucket that `latencyAt` shows. */
const HALF_FORMER = Math.round((Math.LN2 / FORMER_PER_DOUBLING / LOG_FACTOR / 2) * 1_000)
const SHOWN = Math.round((Math.log((FACTOR + 1) / 2) / LOG_FACTOR) * 1_000)

/** SQL of the bucket that shows the middle of a former one, in whole numbers. The first had what is shorter than 1 ms. */
export const IN_SKETCH = `CASE WHEN bucket >= ${SKETCH} THEN bucket WHEN bucket = 0 THEN ${SKETCH}
  ELSE ${MILLISECOND} + (${HALF_FORMER} * (2 * bucket - 1) + ${SHOWN} + 500) / 1000 END`
