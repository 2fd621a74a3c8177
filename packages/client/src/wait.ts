/** How long a call waits for the service. */
export interface Wait {
  /** Aborted by the caller, or with a TimeoutError when nothing came for too long. */
  readonly signal: AbortSignal
  /** Something came: the wait begins anew. */
  renew(): void
  /** Nothing more is waited for; the caller's signal still counts. */
  end(): void
}

/** Timers take no more: 24 days. */
const LONGEST_MS = 2 ** 31 - 1

/** `timeoutMs` may be Infinity. */
export function startWait(timeoutMs: number, caller: AbortSignal | undefined): Wait {
  const late = new AbortController()
  const expire = () => late.abort(new DOMException(`Nothing came for ${timeoutMs} ms`, 'TimeoutError'))
  const ms = Math.min(timeoutMs, LONGEST_MS)
  let timer = setTimeout(expire, ms)
  return {
    signal: caller ? AbortSignal.any([caller, late.signal]) : late.signal,
    renew() {
      clearTimeout(timer)
      timer = setTimeout(expire, ms)
    },
    end: () => clearTimeout(timer),
  }
}
