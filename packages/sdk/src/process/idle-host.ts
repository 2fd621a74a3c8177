/**
 * A request keeps the process running. When the host's work is over, a service that never answers must not: after the time of
 * a flush, the requests under way end, and `beforeExit` follows.
 */
import { clearTimeout, setTimeout } from 'node:timers'
import process from 'node:process'

const LOOKED_MS = 100
const OVER_MS = 1_000
/** Output to pipes and terminals is listed, and keeps no process running. */
const OUTPUTS = new Set(['PipeWrap', 'TTYWrap'])
const OUTPUTS_MAX = 2
let requests = 0
let overAt = -Infinity
let lookedAt = -Infinity
let isIdle = false

/** Whether requests were ended just now because only they kept the process running. */
export const isHostOver = (): boolean => performance.now() - overAt < OVER_MS

interface Waiting {
  endWait?: (() => void) | undefined
}

/** @param endWait of a request that waits for news: it ends without a loss. @returns ends the watch, with the request. */
export function endWithHost(endRequests: () => void, afterMs: number, { endWait }: Waiting): () => void {
  requests += 1
  let wasOver = false
  let timer = setTimeout(lookAtHost, endWait ? 0 : afterMs).unref()
  function lookAtHost(): void {
    timer = setTimeout(lookAtHost, LOOKED_MS).unref()
    const isOver = onlyRequestsLeft()
    // A host that waits only for the SDK, for a moment, continues.
    if (endWait) return wasOver && isOver ? endWait() : void (wasOver = isOver)
    if (!isOver) return
    overAt = performance.now()
    endRequests()
  }
  return () => {
    requests -= 1
    clearTimeout(timer)
  }
}

/** Requests of many clients look at the process together: a look takes the longer the more it does. */
function onlyRequestsLeft(): boolean {
  if (performance.now() - lookedAt >= LOOKED_MS / 2) {
    lookedAt = performance.now()
    isIdle = lookOnce()
  }
  return isIdle
}

/** If the host goes on after all, its events are sent again. Bun and Deno do not say what keeps them running. */
function lookOnce(): boolean {
  const held = process.getActiveResourcesInfo?.().filter((name) => name !== 'TLSWrap') ?? []
  const others = held.filter((name) => name !== 'TCPSocketWrap')
  const sockets = held.length - others.length
  return sockets > 0 && sockets <= requests && others.length <= OUTPUTS_MAX && others.every((name) => OUTPUTS.has(name))
}
