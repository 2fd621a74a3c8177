/** The worker thread of price-table.ts: the data takes 20 MB and a tenth of a second to load. */
import { answerCalls } from '../threads/called-thread.ts'
import { packageRates } from './package-rates.ts'

answerCalls((models: string[]) => models.map(packageRates))
