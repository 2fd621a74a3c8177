export interface ConfigurationOptions {
  /** Time between two refreshes, plus or minus 20 %. From 1,000 to 86,400,000 ms. Default: 30,000. */
  refreshMs?: number | undefined
  /**
   * Policies that the service last confirmed longer ago than this are named in each decision (`policyAgeMs`) and in a diagnostic, in
   * milliseconds. Default: 300,000.
   */
  oldAfterMs?: number | undefined
  /** A file that keeps the last valid configuration across restarts (Node, Bun, Deno). */
  cacheFile?: string | undefined
  /** Oldest file that is used, by the last time that the service confirmed it, in milliseconds. Default: no limit. */
  cacheMaxAgeMs?: number | undefined
  /** A file that the service confirmed less than this many milliseconds ago is used without asking it first. Default: 0. */
  cacheFreshMs?: number | undefined
}
