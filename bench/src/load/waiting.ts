/**
 * The process with clients that wait for a configuration change, as SDKs do. Each sends `GET /runtime-config?wait=25`,
 * repeats it after a 304, and decides a call by each new configuration.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { decide, type Policy } from '@tacho/policy/decide.ts'
import { answer } from '../child.ts'
import { connect, requestHead, type Connection } from './connection.ts'

export interface Opened {
  open: number
  url: string
  target: string
  headers: Record<string, string>
}

export type WaitingCall =
  | Opened
  /** Resolves when this many clients have decided by a new configuration since the previous call, or after 20 s. */
  | { changes: number }

export interface WaitingAnswer {
  /** Unix time in milliseconds of each decision by a new configuration, and whether it blocked the call. */
  decided: { at: number; isBlocked: boolean }[]
}

const OPENED_AT_ONCE = 100
const CHANGES_MS = 20_000
/** The call that each client decides. */
const FACTS = { tool: { name: 'refund', input: { amount: 5 } }, agent: { id: 'support', name: 'support' } } as const

let decided: WaitingAnswer['decided'] = []

answer<WaitingCall, WaitingAnswer>(async (call) => {
  if ('open' in call) {
    for (let opened = 0; opened < call.open; opened += OPENED_AT_ONCE) {
      const size = Math.min(OPENED_AT_ONCE, call.open - opened)
      await Promise.all(Array.from({ length: size }, async () => void waitOn(await connect(call.url), call)))
    }
    return { decided: [] }
  }
  const end = performance.now() + CHANGES_MS
  while (decided.length < call.changes && performance.now() < end) await sleep(2)
  const since = decided
  decided = []
  return { decided: since }
})

async function waitOn(connection: Connection, { url, target, headers }: Opened): Promise<void> {
  let tag = headers['if-none-match'] ?? ''
  for (;;) {
    const head = requestHead('GET', `${url}${target}`, { ...headers, 'if-none-match': tag })
    const { status, body } = await connection.request([head])
    if (status === 304) continue
    if (status !== 200) throw new Error(`A wait was answered with ${status}: ${body.toString().slice(0, 200)}`)
    const { revision, policies } = JSON.parse(body.toString()) as { revision: string; policies: Policy[] }
    tag = `W/"${revision}"`
    const { action } = decide(policies, { ...FACTS, now: Date.now() })
    decided.push({ at: performance.timeOrigin + performance.now(), isBlocked: action === 'BLOCK' })
  }
}
