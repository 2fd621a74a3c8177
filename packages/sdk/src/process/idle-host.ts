/**
 * Ends requests that alone keep the process running: when the host has finished, a service that never answers must not
 * block its exit. After the time of a flush, the requests are aborted, and `beforeExit` follows.
 */
import { clearTimeout, setTimeout } from 'node:timers'
import process from 'node:process'

const LOOKED_MS = 100
const OVER_MS = 1_000
/** Node lists outputs to pipes and terminals, but they do not keep a process running. */
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

/**
 * @param endWait set for a long poll, which can end without a loss. @returns a function that ends the watch; call it
 * when the request ends.
 */
export function endWithHost(endRequests: () => void, afterMs: number, { endWait }: Waiting): () => void {
  requests += 1
  let wasOver = false
  let timer = setTimeout(lookAtHost, endWait ? 0 : afterMs).unref()
  function lookAtHost(): void {
    timer = setTimeout(lookAtHost, LOOKED_MS).unref()
    const isOver = onlyRequestsLeft()
    // The host may wait for the SDK only for a moment, so end a poll only if the host was over twice.
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

/** The requests of all clients share one check, because a check is slow in a busy process. */
function onlyRequestsLeft(): boolean {
  if (performance.now() - lookedAt >= LOOKED_MS / 2) {
    lookedAt = performance.now()
    isIdle = lookOnce()
  }
  return isIdle
}

/** If the host continues after all, its events are sent again. Bun and Deno do not report what keeps them running. */
function lookOnce(): boolean {
  const held = process.getActiveResourcesInfo?.().filter((name) => name !== 'TLSWrap') ?? []
  const others = held.filter((name) => name !== 'TCPSocketWrap')
  const sockets = held.length - others.length
  return sockets > 0 && sockets <= requests && others.length <= OUTPUTS_MAX && others.every((name) => OUTPUTS.has(name))
}
