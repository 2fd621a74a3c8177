/** State of the guards in a project: the policies in force, the last decision, and the records that wait for delivery. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { Tacho } from '@tacho/sdk'
import { openState, type Account } from '../state.ts'
import { httpFetch } from '../http-fetch.ts'
import { openLastDecisions, type LastDecision } from './session/last-decisions.ts'
import { projectOf } from './written-paths.ts'

export interface HookStatus {
  readonly project: string
  /** Null: no policies are known, so every tool is denied. */
  readonly policies: readonly { readonly name: string; readonly severity: string; readonly action: string }[] | null
  /** `service`: confirmed now. `disk`: the service did not answer. */
  readonly source: 'service' | 'disk' | null
  readonly ageMs: number | null
  readonly last: LastDecision | null
  readonly waiting: Waiting
}

export interface Waiting {
  /**
   * Number of undelivered records. Some may have been delivered already: a file is deleted only when all of its records
   * are.
   */
  readonly records: number
  /** Unix time in milliseconds. */
  readonly since: number | null
}

const ANSWER_MS = 2_000
const SPOOL_BYTES_MAX = 64 * 1_048_576

export async function readStatus(account: Account, folder: string): Promise<HookStatus> {
  const state = openState(account)
  const project = projectOf(folder)
  const tacho = new Tacho({
    apiKey: account.apiKey,
    baseUrl: account.url,
    clientId: state.clientId,
    fetch: httpFetch,
    configuration: { cacheFile: state.configurationFile },
    onDiagnostic: () => undefined,
  })
  await tacho.configuration.ready(ANSWER_MS)
  const { current, source, ageMs } = tacho.configuration.state
  await tacho.shutdown(0)
  const last = openLastDecisions(state.directory).read(project)
  const waiting = waitingIn(state.spool)
  return { project, policies: current?.policies ?? null, source: current ? source : null, ageMs, last, waiting }
}

function waitingIn(spool: string): Waiting {
  let [records, bytes, since] = [0, 0, Infinity]
  for (const name of namesIn(spool)) {
    const file = path.join(spool, name)
    const stats = statSync(file, { throwIfNoEntry: false })
    if (!stats?.isFile() || stats.size === 0 || (bytes += stats.size) > SPOOL_BYTES_MAX) continue
    records += textOf(file).split('\n').length - 1
    since = Math.min(since, stats.birthtimeMs)
  }
  return { records, since: since === Infinity ? null : since }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /\.(events|issues)$/.test(name))
  } catch {
    return []
  }
}

/** Empty if the file is gone, because its records were delivered a moment ago. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
