/** The timeout of a call. */
export interface Wait {
  /** Aborts if the caller does, or with a TimeoutError after silence. */
  readonly signal: AbortSignal
  /** Restarts the timeout after data arrived. */
  renew(): void
  /** Stops the timeout; the caller's signal still counts. */
  end(): void
}

/** The longest delay a timer supports: 24 days. */
const LONGEST_MS = 2 ** 31 - 1

/** `timeoutMs` may be Infinity. */
export function startWait(timeoutMs: number, caller: AbortSignal | undefined): Wait {
  const late = new AbortController()
  const expire = () => late.abort(new DOMException(`No answer for ${timeoutMs} ms`, 'TimeoutError'))
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
