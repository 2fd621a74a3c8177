/** Flags of a process that opens a store: its threads are those that `npm test` has built, as in the processes of the tests. */
export const BUILT_THREADS = [`--import=${new URL('../../../../scripts/test-threads.mjs', import.meta.url).href}`]
