/** The process with SDK clients that make a guarded call as soon as their configuration changes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Tacho, ToolBlockedError } from '@tacho/sdk'
import { answer } from '../child.ts'
import type { WaitingAnswer } from './waiting.ts'

interface OpenedSdks {
  open: number
  url: string
  apiKey: string
}

/** `changes`: the number of clients that must decide by the configuration of this revision. */
export type SdkCall = OpenedSdks | { changes: number; revision: string } | { close: true }

const CHANGES_MS = 20_000
const OPENED_AT_ONCE = 10
const clients: Tacho[] = []
/** Decisions by revision, because a slow client may still decide by the earlier one. */
const decided = new Map<string, WaitingAnswer['decided']>()

answer<SdkCall, WaitingAnswer>(async (call) => {
  if ('close' in call) await Promise.all(clients.map((client) => client.shutdown()))
  if ('open' in call) {
    for (let opened = 0; opened < call.open; opened += OPENED_AT_ONCE) {
      const size = Math.min(OPENED_AT_ONCE, call.open - opened)
      await Promise.all(Array.from({ length: size }, (_, index) => open(call, opened + index)))
    }
    // Long polls begin a second after the first load.
    await sleep(3_000)
  }
  if (!('changes' in call)) return { decided: [] }
  const end = performance.now() + CHANGES_MS
  const since = () => decided.get(call.revision) ?? []
  while (since().length < call.changes && performance.now() < end) await sleep(2)
  const answered = since()
  // Forget these decisions: when a stop ends, the same revision can be in force again.
  decided.delete(call.revision)
  return { decided: answered }
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
  // Make a guarded call first: it loads the modules that all clients share.
  await client.run(() => refund({ amount: 5 }))
  client.configuration.onChange(({ revision }) => void call(revision))

  async function call(revision: string): Promise<void> {
    const isBlocked = await client
      .run(() => refund({ amount: 5 }))
      .then(
        () => false,
        (error: unknown) => {
          if (error instanceof ToolBlockedError) return true
          throw error
        },
      )
    const ofRevision = decided.get(revision) ?? []
    decided.set(revision, ofRevision)
    ofRevision.push({ at: performance.timeOrigin + performance.now(), isBlocked })
  }
}
