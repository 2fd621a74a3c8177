/** Records model calls with one of the recorders, in a process of its own. */
import { existsSync, openSync, readFileSync, readSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { answer } from '../../child.ts'
import { spreadOf } from '../../stats.ts'
import { MARK, type HostCost, type HostLoad } from './model-calls.ts'
import { recorders } from './recorders.ts'

const schedule = readable('/proc/thread-self/schedstat')
const line = Buffer.alloc(64)

/** How long this thread could have run, while other programs did. */
function waitedMs(): number {
  if (schedule === undefined) return 0
  const size = readSync(schedule, line, 0, line.length, 0)
  return Number(line.toString('latin1', 0, size).split(' ')[1]) / 1e6
}

function readable(file: string): number | undefined {
  return existsSync(file) ? openSync(file, 'r') : undefined
}

answer<HostLoad, HostCost>(async ({ by, url, folder, texts, burst, seconds }) => {
  const recorder = await recorders[by](url, folder)
  // Flat texts, as a model's client reads them from an answer.
  const lines = readFileSync(texts, 'utf8').trim().split('\n')
  const pool = lines.map((line) => JSON.parse(line) as string)
  const textOf = (n: number): string => pool[n % pool.length] ?? ''
  let n = 0

  const record = (): void => {
    const counts = { promptTokens: 1_204, completionTokens: 310 }
    recorder.record({ model: MARK, input: textOf(n), output: textOf(n * 7 + 3), ...counts })
    n++
  }

  async function measureBursts(): Promise<number> {
    const [from, before] = [process.cpuUsage(), n]
    for (const end = performance.now() + seconds * 400; performance.now() < end;) {
      for (let call = 0; call < burst; call++) {
        record()
        await turn()
      }
      await recorder.flush()
    }
    const { user, system } = process.cpuUsage(from)
    return (user + system) / (n - before)
  }

  async function measureCalls(): Promise<number> {
    const took: number[] = []
    for (const end = performance.now() + seconds * 300; performance.now() < end;) {
      for (let call = 0; call < burst; call++) {
        const begun = performance.now()
        record()
        took.push(performance.now() - begun)
        await turn()
      }
      await recorder.flush()
    }
    return spreadOf(took).median * 1_000
  }

  async function measurePause(): Promise<number> {
    let longest = 0
    let isOver = false
    const watched = (async () => {
      while (!isOver) {
        const [from, waited] = [performance.now(), waitedMs()]
        await turn()
        longest = Math.max(longest, performance.now() - from - (waitedMs() - waited))
      }
    })()
    for (const end = performance.now() + seconds * 300; performance.now() < end;) {
      for (let call = 0; call < burst; call++) {
        record()
        await turn()
      }
      await recorder.flush()
    }
    isOver = true
    await watched
    return longest
  }

  const cost = { totalUs: await measureBursts(), callUs: await measureCalls(), pauseMs: await measurePause() }
  await recorder.end()
  const counted = Number(await (await fetch(`${url}/counted`)).text())
  if (by !== 'nothing' && counted !== n) throw new Error(`${by}: ${n} model calls were recorded, ${counted} arrived`)
  return cost
})
