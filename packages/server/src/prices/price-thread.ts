/** The worker thread of price-table.ts: the data takes 20 MB and a tenth of a second to load. */
import { parentPort } from 'node:worker_threads'
import { packageRates } from './package-rates.ts'

parentPort?.on('message', ({ id, models }: { id: number; models: string[] }) => {
  parentPort?.postMessage({ id, rates: models.map(packageRates) })
})
