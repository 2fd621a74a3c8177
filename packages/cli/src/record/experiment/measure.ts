/**
 * The user's own measure: a module or a command. It gets the run before and after, and returns how much better the
 * second one is.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { printable } from '../../engine/output.ts'
import { failed } from '../../engine/stop.ts'
import type { TapeStep } from '../tape/tape.ts'
import type { RunFacts } from './run-facts.ts'

interface MeasuredRun extends RunFacts {
  timeline: readonly TapeStep[]
}

export interface MeasuredPair {
  run: string
  before: MeasuredRun
  after: MeasuredRun
}

export type Measure = (measured: MeasuredPair) => Promise<number>

const MODULE = /\.[cm]?[jt]s$/
const COMMAND_MS = 60_000

/** @param place a module (.js, .mjs, .ts and the like) whose default export is the function; else a command line. */
export async function openMeasure(place: string): Promise<Measure> {
  const call = MODULE.test(place) && existsSync(place) ? await moduleFunction(place) : commandFunction(place)
  return async (measured) => {
    const value = await call(measured)
    if (typeof value === 'number' && Number.isFinite(value)) return value
    throw failed(`--measure gave no number for the run ${printable(measured.run)}.`)
  }
}

async function moduleFunction(file: string): Promise<(measured: MeasuredPair) => unknown> {
  const loaded = (await import(pathToFileURL(path.resolve(file)).href)) as { default?: unknown }
  if (typeof loaded.default !== 'function') throw failed(`${printable(file)} must export a function by default.`)
  return loaded.default as (measured: MeasuredPair) => unknown
}

function commandFunction(line: string): (measured: MeasuredPair) => Promise<number> {
  return async (measured) => {
    const child = spawn(line, { shell: true, stdio: ['pipe', 'pipe', 'inherit'], timeout: COMMAND_MS })
    child.stdin.on('error', () => undefined).end(JSON.stringify(measured))
    const [output, [code]] = await Promise.all([
      readText(child.stdout),
      once(child, 'close') as Promise<[number | null]>,
    ])
    if (code !== 0)
      throw failed(`--measure ended with exit code ${code ?? 'unknown'} for the run ${printable(measured.run)}.`)
    return output.trim() === '' ? Number.NaN : Number(output)
  }
}
