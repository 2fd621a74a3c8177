/** The Tacho client of a proxy, and its delivery at the end. */
import { Tacho } from '@tacho/sdk'
import { openState, type Account, type State } from '../state.ts'

export interface WireClientOptions {
  readonly account: Account
  readonly capture: 'full' | 'metadata-only'
  readonly warn: (message: string) => void
}

export interface WireClient {
  readonly tacho: Tacho
  /** Delivers what it can; other events wait on disk. */
  close(): Promise<void>
}

/** Payload keys that metadata-only mode keeps too. */
const WIRE_KEYS = ['recordedBy', 'parentRunId', 'runId', 'exitCode', 'signal']
/** Longest wait for the service's first answer. */
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
    // Do not handle signals: the program decides what they do.
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

/** Recording fails open: a full or read-only disk does not stop the program. */
function stateOf(account: Account, warn: (message: string) => void): State | undefined {
  try {
    return openState(account)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    warn(`Nothing can be kept on disk (${code}): events are lost if Tacho cannot be reached.`)
    return undefined
  }
}
