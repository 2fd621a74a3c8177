/** Records one program: starts the proxy, runs the program with the proxy's addresses, and reports the outcome. */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Outcome } from '@tacho/sdk'
import type { Account } from '../state.ts'
import { completePath, redirected } from './clients.ts'
import { isSecret, startProxy, type Door } from './proxy.ts'
import { runCommand, type CommandEnd } from './run-command.ts'
import { openWireClient } from './wire-client.ts'
import { WireRecorder, type GuardSettings, type WireNames } from './wire-recorder.ts'

export interface ProgramOptions {
  readonly account: Account
  readonly words: readonly string[]
  readonly names: WireNames
  readonly capture: 'full' | 'metadata-only'
  readonly guard?: GuardSettings | undefined
  readonly warn: (message: string) => void
}

/** How long answers may continue after the program ended. */
const GRACE_MS = 200

export interface RecordedProgram {
  readonly exitCode: number
  /** Id of the program's own run; undefined if an SDK in the program recorded it. */
  readonly runId: string | undefined
}

export async function recordProgram(options: ProgramOptions): Promise<RecordedProgram> {
  const { account, words, names, capture, guard, warn } = options
  const { tacho, close } = openWireClient({ account, capture, warn })
  // Load the policies while the program starts.
  if (guard) void tacho.configuration.ready()
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-record-'))
  const noted = path.join(folder, 'sdk')
  const secret = randomBytes(24).toString('base64url')
  const recorder = new WireRecorder(tacho, names, { isElsewhere: () => existsSync(noted), guard })
  let door: Door | 404 = 404
  const proxy = await startProxy({ enter: (key) => (isSecret(key, secret) ? door : 404) })
  const { variables, routes, unreadable } = redirected(`${proxy.origin}/${secret}`, process.env)
  for (const name of unreadable) warn(`${name} is not an http or https address: its requests are not recorded.`)
  door = { routes, completePath, isGuarded: guard !== undefined, observe: (request) => recorder.observe(request) }
  try {
    const end = await runCommand(words, { ...variables, TACHO_RECORDED_BY: noted })
    await proxy.close(GRACE_MS)
    await recorder.end(outcomeOf(end), { exitCode: end.code, ...(end.signal && { signal: end.signal }) })
    await close()
    return { exitCode: end.code, runId: recorder.recordedRun }
  } finally {
    await proxy.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A program that a person or a supervisor stopped has not failed. */
function outcomeOf({ code, isStopped }: CommandEnd): Outcome {
  if (code === 0) return 'COMPLETED'
  return isStopped ? 'CANCELLED' : 'FAILED'
}
