/** Clients of the SDK that make a guarded call as soon as their configuration changes. In a process of its own. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Tacho, ToolBlockedError } from '@tacho/sdk'
import { answer } from '../child.ts'
import type { WaitingAnswer } from './waiting.ts'

interface OpenedSdks {
  open: number
  url: string
  apiKey: string
}

export type SdkCall = OpenedSdks | { changes: number } | { close: true }

const CHANGES_MS = 20_000
const OPENED_AT_ONCE = 10
const clients: Tacho[] = []
let decided: WaitingAnswer['decided'] = []

answer<SdkCall, WaitingAnswer>(async (call) => {
  if ('close' in call) await Promise.all(clients.map((client) => client.shutdown()))
  if ('open' in call) {
    for (let opened = 0; opened < call.open; opened += OPENED_AT_ONCE) {
      const size = Math.min(OPENED_AT_ONCE, call.open - opened)
      await Promise.all(Array.from({ length: size }, (_, index) => open(call, opened + index)))
    }
    // Waiting begins a second after the first load.
    await sleep(3_000)
  }
  if (!('changes' in call)) return { decided: [] }
  const end = performance.now() + CHANGES_MS
  while (decided.length < call.changes && performance.now() < end) await sleep(2)
  const since = decided
  decided = []
  return { decided: since }
})

async function open({ url, apiKey }: OpenedSdks, index: number): Promise<void> {
  const client = new Tacho({
    baseUrl: url,
    apiKey,
    agentId: 'support',
    agentName: 'support',
    clientId: `client-${process.pid}-${index}`,
  })
  clients.push(client)
  const refund = client.guard(async ({ amount }: { amount: number }) => amount, { name: 'refund' })
  await client.configuration.ready(60_000)
  // The first guarded call loads what the others use.
  await client.run(() => refund({ amount: 5 }))
  client.configuration.onChange(() => void call())

  async function call(): Promise<void> {
    const isBlocked = await client
      .run(() => refund({ amount: 5 }))
      .then(
        () => false,
        (error: unknown) => {
          if (error instanceof ToolBlockedError) return true
          throw error
        },
      )
    decided.push({ at: performance.timeOrigin + performance.now(), isBlocked })
  }
}
