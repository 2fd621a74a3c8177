import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** By how many bytes the heap of this thread grows through the work. */
export async function heapGrowth(work: () => Promise<void>): Promise<number> {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  await work()
  collectGarbage()
  return process.memoryUsage().heapUsed - before
}
