/** The package's data takes 20 MB and a tenth of a second to load. The thread ends soon after, and with it the data. */
import { createRequire } from 'node:module'
import { LRUCache } from 'lru-cache'
import type { ModelRates } from '../domain/runs/estimate.ts'
import { moduleUrl } from '../program/module-url.ts'
import { versionIn } from '../program/version.ts'
import { createSharedThread, startCalledThread } from '../threads/called-thread.ts'

export type PriceTable = ReturnType<typeof createPriceTable>

const PACKAGE = '@pydantic/genai-prices'
const IDLE_MS = 10_000
const MODELS_KEPT = 5_000

export function createPriceTable() {
  const main = createRequire(import.meta.url).resolve(PACKAGE)
  const known = new LRUCache<string, { rates: ModelRates | null }>({ max: MODELS_KEPT })
  const threads = createSharedThread<string[], (ModelRates | null)[]>(
    (onEnd) => startCalledThread(moduleUrl('price-thread', import.meta.url), { name: 'price' }, onEnd),
    IDLE_MS,
  )

  async function look(models: string[]): Promise<void> {
    const thread = threads.enter()
    try {
      const rates = await thread.call(models)
      models.forEach((model, index) => known.set(model, { rates: rates[index] ?? null }))
    } finally {
      threads.leave()
    }
  }

  return {
    version: `genai-prices ${versionIn(new URL('../package.json', `file://${main}`))}`,
    async ratesOf(models: Iterable<string>): Promise<ReadonlyMap<string, ModelRates | null>> {
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
    close: threads.close,
  }
}
