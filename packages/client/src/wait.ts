/** How long a call waits for the service. */
export interface Wait {
  /** Aborted by the caller, or with a TimeoutError when nothing came for too long. */
  readonly signal: AbortSignal
  /** Something came: the wait begins anew. */
  renew(): void
  /** Nothing more is waited for; the caller's signal still counts. */
  end(): void
}

export function startWait(timeoutMs: number, caller: AbortSignal | undefined): Wait {
  const late = new AbortController()
  const expire = () => late.abort(new DOMException(`Nothing came for ${timeoutMs} ms`, 'TimeoutError'))
  let timer = setTimeout(expire, timeoutMs)
  return {
    signal: caller ? AbortSignal.any([caller, late.signal]) : late.signal,
    renew() {
      clearTimeout(timer)
      timer = setTimeout(expire, timeoutMs)
    },
    end: () => clearTimeout(timer),
  }
}
