import { answerCalls } from '../threads/called-thread.ts'
import { packageRates } from './package-rates.ts'

answerCalls((models: string[]) => models.map(packageRates))
