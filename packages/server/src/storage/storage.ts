/**
 * Each act is one operation, the same on every engine. Its declaration is the function beside its statements. Arguments
 * and results are plain data, because an act may run in another thread. Times are milliseconds since 1970. The caller
 * supplies the clock and the ids of control rows; the store makes the ids of runs and agents. Expected outcomes are
 * values: null is a row that the tenant does not have, `too_many` a limit that is reached. A change that makes no
 * difference writes and audits nothing. A rejected promise is a StorageError or a bug.
 */
import type { ActMethods } from './sql/acts.ts'
import type { Store } from './engine/store.ts'

export type Storage = ActMethods & Store
