/** Flags for a process that opens a store, so that its threads start from the build, as in the processes of the tests. */
export const BUILT_THREADS = [`--import=${new URL('../../../../scripts/test-threads.mjs', import.meta.url).href}`]
