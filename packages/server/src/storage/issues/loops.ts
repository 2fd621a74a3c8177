/** A loop: one tool is called with the same input again and again, as the detectors of the SDKs count it. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'

/** Of the hash of a call: equal ones among twenty calls are hardly ever an accident. */
export const CALL_KEY_CHARS = 8

export const RECENT_CALLS_CHARS = LIMITS.loopWindowCalls * CALL_KEY_CHARS

/** `recent`: the keys of the latest calls, one after another. */
export function addCall(recent: string | null, key: string): string {
  return `${recent ?? ''}${key}`.slice(-RECENT_CALLS_CHARS)
}

/** Whether the latest call is in a loop. */
export function isLoop(recent: string): boolean {
  const latest = recent.slice(-CALL_KEY_CHARS)
  let times = 0
  for (let at = 0; at < recent.length; at += CALL_KEY_CHARS) {
    if (recent.startsWith(latest, at)) times++
  }
  return times >= LIMITS.loopCalls
}

export interface NewLoop {
  id: string
  toolName: string
  clientId: string
  sessionId: string | null
  /** External, or its name. */
  agentId: string
  time: number
}
