/** Bounds of neighbouring buckets differ by 2^(1/4) = 1.19. A bucket is shown as its middle: at most 9 % off. */
const PER_DOUBLING = 4

export function bucketOf(latencyMs: number): number {
  return latencyMs < 1 ? 0 : Math.floor(Math.log2(latencyMs) * PER_DOUBLING) + 1
}

export function latencyAt(bucket: number): number {
  return bucket === 0 ? 0 : 2 ** ((bucket - 0.5) / PER_DOUBLING)
}
