import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
/** Collects garbage, in a process without the flag --expose-gc. */
export const collectGarbage = runInNewContext('gc') as () => void
// With the flag, V8 compiles Node's own code again in each new thread, and a host does not set it.
setFlagsFromString('--no-expose-gc')

/** Number of bytes by which the work grows the heap of this thread. */
export async function heapGrowth(work: () => Promise<void>): Promise<number> {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  await work()
  collectGarbage()
  return process.memoryUsage().heapUsed - before
}
