export interface ConfigurationOptions {
  /** Time between two looks, give or take a fifth. From 1,000 to 86,400,000 ms. Default: 30,000. */
  refreshMs?: number
  /** A file that keeps the last good configuration over restarts (Node, Bun, Deno). */
  cacheFile?: string
}
