/** The process that records model calls with one of the recorders. */
import { existsSync, openSync, readFileSync, readSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { answer } from '../../child.ts'
import { spreadOf } from '../../stats.ts'
import { MARK, NUMBER_CHARS, type HostCost, type HostLoad, type Message, type ModelCall } from './model-calls.ts'
import { recorders } from './recorders.ts'

const schedule = readable('/proc/thread-self/schedstat')
const line = Buffer.alloc(64)

/** How long this thread was ready to run while other programs ran; 0 if the system does not report it. */
function waitedMs(): number {
  if (schedule === undefined) return 0
  const size = readSync(schedule, line, 0, line.length, 0)
  return Number(line.toString('latin1', 0, size).split(' ')[1]) / 1e6
}

function readable(file: string): number | undefined {
  return existsSync(file) ? openSync(file, 'r') : undefined
}

/** Makes the calls of a burst, before the burst is measured. */
function callsOf({ messages, keys, texts }: HostLoad): (count: number) => ModelCall[] {
  const lines = readFileSync(texts, 'utf8').trim().split('\n')
  const pool = lines.map((text) => Buffer.from(JSON.parse(text) as string, 'latin1'))
  let made = 0
  // Strings from bytes, as a model's client makes them. V8 would have to flatten joined strings on their first read.
  const textOf = (n: number): string => {
    const bytes = pool[n % pool.length] as Buffer
    bytes.write(String(made++).padStart(NUMBER_CHARS - 2), 'latin1')
    return bytes.toString('latin1')
  }
  const counts = { model: MARK, promptTokens: 1_204, completionTokens: 310 }
  const fields = Object.fromEntries(Array.from({ length: keys }, (_, index) => [`field ${index}`, index]))
  const window: Message[] = []
  let at = 0
  const messageOf = (role: string, content = textOf(at++)): Message => ({ role, content })
  function next(): ModelCall {
    if (keys > 0) return { ...counts, input: fields, output: textOf(at++) }
    if (messages === 0) return { ...counts, input: textOf(at), output: textOf(7 * at++ + 3) }
    while (window.length < messages) window.push(messageOf('user'))
    const output = textOf(at++)
    const call = { ...counts, input: [...window], output }
    window.splice(0, 2)
    window.push(messageOf('assistant', output), messageOf('user'))
    return call
  }
  return (count) => Array.from({ length: count }, next)
}

answer<HostLoad, HostCost>(async (load) => {
  const { by, url, folder, burst, seconds } = load
  const makeCalls = callsOf(load)
  const first = makeCalls(1)
  const recorder = await recorders[by](url, folder)
  // Record now: a run that gets its first event late records one more event.
  first.forEach(recorder.record)
  let n = 1

  /** Records bursts for this share of the measured time. */
  async function forShare(share: number, act: (calls: ModelCall[]) => Promise<void>): Promise<void> {
    for (const end = performance.now() + seconds * share * 1_000; performance.now() < end;) {
      const calls = makeCalls(burst)
      await act(calls)
      n += calls.length
    }
  }

  async function measureBursts(): Promise<number> {
    const before = n
    let total = 0
    await forShare(0.4, async (calls) => {
      const from = process.cpuUsage()
      for (const call of calls) {
        recorder.record(call)
        await turn()
      }
      await recorder.flush()
      const { user, system } = process.cpuUsage(from)
      total += user + system
    })
    return total / (n - before)
  }

  async function measureCalls(): Promise<number> {
    const took: number[] = []
    await forShare(0.3, async (calls) => {
      for (const call of calls) {
        const begun = performance.now()
        recorder.record(call)
        took.push(performance.now() - begun)
        await turn()
      }
      await recorder.flush()
    })
    return spreadOf(took).median * 1_000
  }

  async function measurePause(): Promise<number> {
    let longest = 0
    await forShare(0.3, async (calls) => {
      let isOver = false
      const watched = (async () => {
        while (!isOver) {
          const [from, waited] = [performance.now(), waitedMs()]
          await turn()
          longest = Math.max(longest, performance.now() - from - (waitedMs() - waited))
        }
      })()
      for (const call of calls) {
        recorder.record(call)
        await turn()
      }
      await recorder.flush()
      isOver = true
      await watched
    })
    return longest
  }

  const cost = { totalUs: await measureBursts(), callUs: await measureCalls(), pauseMs: await measurePause() }
  await recorder.end()
  const counted = Number(await (await fetch(`${url}/counted`)).text())
  if (by !== 'nothing' && counted !== n) throw new Error(`${by}: ${n} model calls were recorded, ${counted} arrived`)
  return cost
})
