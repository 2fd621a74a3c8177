import { Tacho, type TachoOptions } from '@tacho/sdk'
import { fakeTacho } from '@tacho/sdk/testing'
import { guardTools, recordModel } from '@tacho/sdk/ai'
import { recordClient } from '@tacho/sdk/openai'

const options: TachoOptions = { fetch: globalThis.fetch, agentName: undefined }
export const tacho = new Tacho(options)
export const refund: (amount: number) => Promise<string> = tacho.guard((amount: number) => `${amount}`, {
  name: 'refund',
})
export const everything = [fakeTacho, guardTools, recordModel, recordClient]
