import { Tacho } from '@tacho/sdk'

/** Each runtime of this program has one client. */
export const tacho = new Tacho({
  configuration: { refreshMs: 1_000 },
  onDiagnostic: ({ code, message }) => console.log(`tacho ${code}: ${message}`),
})

const pay = async (amount: number) => `paid ${amount}`

export const refund = tacho.guard(pay, { name: 'refund' })
export const gift = tacho.guard(pay, { name: 'gift' })

export const answerOf = (call: Promise<string>) => call.catch((error: Error) => error.name)
