/**
 * Looks up prices of models. A thread loads the data of the package for the first unknown model and ends soon after, so
 * an idle server does not hold it.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { LRUCache } from 'lru-cache'
import type { ModelRates } from '../domain/price.ts'
import { moduleUrl } from '../program/module-url.ts'
import { PendingCalls } from '../threads/pending-calls.ts'

export interface PriceTable {
  /** Name and version of the data. */
  version: string
  /** Prices of these models; null: none is known. */
  ratesOf(models: Iterable<string>): Promise<ReadonlyMap<string, ModelRates | null>>
  close(): Promise<void>
}

const PACKAGE = '@pydantic/genai-prices'
const IDLE_MS = 10_000
const MODELS_KEPT = 5_000

interface Answer {
  id: number
  rates: (ModelRates | null)[]
}

export function createPriceTable(idleMs = IDLE_MS): PriceTable {
  const known = new LRUCache<string, { rates: ModelRates | null }>({ max: MODELS_KEPT })
  const calls = new PendingCalls<(ModelRates | null)[]>()
  let thread: Worker | null = null
  let idle: NodeJS.Timeout | undefined

  function start(): Worker {
    const started = new Worker(moduleUrl('price-thread', import.meta.url))
    started.unref()
    started.on('message', ({ id, rates }: Answer) => calls.resolve(id, rates))
    started.once('error', (error) => end(started, error instanceof Error ? error : new Error(String(error))))
    started.once('exit', () => end(started, new Error('the price thread ended')))
    return started
  }

  function end(ended: Worker, error: Error): void {
    if (thread !== ended) return
    thread = null
    calls.rejectAll(error)
  }

  async function look(models: string[]): Promise<void> {
    clearTimeout(idle)
    const looking = (thread ??= start())
    try {
      const rates = await calls.start((id) => looking.postMessage({ id, models }))
      models.forEach((model, index) => known.set(model, { rates: rates[index] ?? null }))
    } finally {
      clearTimeout(idle)
      idle = setTimeout(() => void stop(), idleMs).unref()
    }
  }

  async function stop(): Promise<void> {
    if (calls.size > 0) return
    const ended = thread
    thread = null
    await ended?.terminate()
  }

  return {
    version: `genai-prices ${readVersion()}`,
    async ratesOf(models) {
      const wanted = new Set(models)
      wanted.delete('')
      const found = new Map<string, ModelRates | null>()
      const unknown: string[] = []
      for (const model of wanted) {
        const entry = known.get(model)
        if (entry === undefined) unknown.push(model)
        else found.set(model, entry.rates)
      }
      if (unknown.length > 0) {
        await look(unknown)
        for (const model of unknown) found.set(model, known.get(model)?.rates ?? null)
      }
      return found
    },
    async close() {
      clearTimeout(idle)
      await thread?.terminate()
    },
  }
}

function readVersion(): string {
  const main = createRequire(import.meta.url).resolve(PACKAGE)
  const file = new URL('../package.json', `file://${main}`)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
