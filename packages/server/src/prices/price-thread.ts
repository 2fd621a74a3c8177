import { answerCalls } from '../threads/threads.ts'
import { packageRates } from './package-rates.ts'

answerCalls((models: string[]) => models.map(packageRates))
