/** The client of Tacho behind a proxy, and how it delivers at the end. */
import { Tacho } from '@tacho/sdk'
import { openState, type Account, type State } from '../state.ts'

export interface WireClientOptions {
  readonly account: Account
  readonly capture: 'full' | 'metadata-only'
  readonly warn: (message: string) => void
}

export interface WireClient {
  readonly tacho: Tacho
  /** Delivers what it can; the rest waits on disk. */
  close(): Promise<void>
}

/** Keys that metadata-only mode keeps too. */
const WIRE_KEYS = ['recordedBy', 'parentRunId', 'runId', 'exitCode', 'signal']
/** How long to wait for the first answer of Tacho. */
const ANSWER_MS = 2_000
const FLUSH_MS = 10_000

export function openWireClient({ account, capture, warn }: WireClientOptions): WireClient {
  const state = stateOf(account, warn)
  const tacho = new Tacho({
    apiKey: account.apiKey,
    baseUrl: account.url,
    clientId: state?.clientId,
    spool: state?.spool,
    capture,
    metadataKeys: WIRE_KEYS,
    configuration: { cacheFile: state?.configurationFile },
    // Without policies, a guard refuses every call.
    guard: { whenUnconfigured: 'block' },
    // The program decides what a signal does.
    flushOnSignals: false,
    onDiagnostic: ({ level, message }) => {
      if (level === 'error') warn(message)
    },
  })
  return {
    tacho,
    async close() {
      const { sent, left: unsentEvents } = await tacho.flush(ANSWER_MS)
      const { left } = await tacho.shutdown(unsentEvents > 0 && sent > 0 ? FLUSH_MS : 0)
      if (left > 0) warn(`${left} events were not delivered${state ? `; they stay in ${state.spool}` : ''}.`)
    },
  }
}

/** Recording fails open: a disk that is full or read-only stops no program. */
function stateOf(account: Account, warn: (message: string) => void): State | undefined {
  try {
    return openState(account)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    warn(`Nothing can be kept on disk (${code}): events are lost if Tacho cannot be reached.`)
    return undefined
  }
}
