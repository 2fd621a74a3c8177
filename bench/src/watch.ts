/** Measures how long others wait, and the server's memory, while something happens to it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from './server.ts'
import { timesOf } from './stats.ts'

const QUIET_MS = 20
const MEMORY_MS = 50
/** An answer counts at least as long as this, because subtracting the delays can leave less than nothing. */
const NOTHING_MS = 0.01

/** Measures /healthz and memory during the work. */
export async function watch(server: Pick<Server, 'url' | 'pid' | 'usage'>, work: () => Promise<unknown>) {
  const took: number[] = []
  let [isOver, megabytes] = [false, 0]
  resetPeak(server.pid)
  const processes = [server.pid, process.pid]
  const delays = (): number => processes.reduce((sum, pid) => sum + waitedMs(pid), 0)
  async function askHealth(): Promise<void> {
    while (!isOver) {
      const [from, delayed] = [performance.now(), delays()]
      await (await fetch(`${server.url}/healthz`)).text()
      const waited = performance.now() - from - (delays() - delayed)
      took.push(Math.max(waited, NOTHING_MS))
      // The requests that would have been sent in the meantime waited too.
      for (let left = waited - QUIET_MS; left > 0; left -= QUIET_MS) took.push(left)
      await sleep(QUIET_MS)
    }
  }
  async function askMemory(): Promise<void> {
    while (!isOver) {
      megabytes = Math.max(megabytes, peakOf(server.pid) ?? (await server.usage()).megabytes)
      await sleep(MEMORY_MS)
    }
  }
  const watching = Promise.all([askHealth(), askMemory()])
  try {
    await work()
  } finally {
    isOver = true
    await watching
  }
  return { megabytes, ...timesOf(took) }
}

/** How long the main thread of a process was ready but did not run, since its start; 0 if the system does not say. */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

/** The largest memory of a process since `resetPeak`; null if the system does not say. */
function peakOf(pid: number): number | null {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return kib === undefined ? null : (Number(kib) * 1_024) / 1e6
  } catch {
    return null
  }
}

function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // Not possible or not allowed on this system: the peak then covers the time since the start.
  }
}
