/** Builds a copy of the SDK in which a test can make any function throw. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const SRC = fileURLToPath(new URL('../../sdk/src/', import.meta.url))

/** Matches functions, methods and arrow functions with a body, as esbuild writes them. */
const FUNCTION =
  /^\s*(?:(?:export |async )*function\*?\s+([\w$]+)\(.*\)|(?:static |async |get |set |\*)*(#?[\w$]+|\[Symbol\.\w+\])\(.*\)|.*?([\w$]*)(?: [=:] (?:async )?|\(|, ?|)(?:\(.*\)|[\w$]+) =>) \{$/
const NO_FUNCTIONS = new Set(['if', 'for', 'while', 'switch', 'catch', 'with'])

export interface Place {
  readonly file: string
  readonly name: string
}

export interface Breakable<Modules> {
  readonly modules: Modules
  readonly places: readonly Place[]
  /** Makes the function at this place throw. Undefined: none throws. Returns the places that ran since the last call. */
  breakAt(place: Place | undefined): Place[]
}

/** @param exported statements that export what a test needs, with paths below packages/sdk/src. */
export async function breakableSdk<Modules>(exported: string): Promise<Breakable<Modules>> {
  const { outputFiles } = await build({
    stdin: { contents: exported, resolveDir: SRC, loader: 'ts' },
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    conditions: ['node'],
    external: ['node:*'],
    write: false,
  })
  const places: Place[] = []
  let file = ''
  const lines = (outputFiles[0]?.text ?? '').split('\n').map((line) => {
    const [, source] = /^\/\/ (?:.*\/)?packages\/(.*\.ts)$/.exec(line) ?? /^ {2}"(packages\/.*\.ts)"/.exec(line) ?? []
    if (source) file = source
    const found = FUNCTION.exec(line)
    // esbuild appends numbers to names that occur more than once.
    const name = found && (found[1] ?? found[2] ?? found[3] ?? '').replace(/\d+$/, '')
    if (!found || NO_FUNCTIONS.has(name ?? '') || !file.startsWith('sdk/')) return line
    places.push({ file, name: name || `line ${line.trim().slice(0, 40)}` })
    return `${line} __tachoAt(${places.length - 1});`
  })
  const before = `const __tachoAt = (at) => { globalThis.__tachoRan?.add(at); if (globalThis.__tachoBroken === at) throw new RangeError('broken inside') };\n`
  // Below the root, so that it finds packages.
  const folder = mkdtempSync(path.join(SRC, '../../../.cache/breakable-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const program = path.join(folder, 'sdk.mjs')
  writeFileSync(program, `${before}${lines.join('\n')}`)
  const modules = (await import(pathToFileURL(program).href)) as Modules
  const state = globalThis as { __tachoBroken?: number | undefined; __tachoRan?: Set<number> }
  return {
    modules,
    places,
    breakAt(place) {
      const ran = [...(state.__tachoRan ?? [])].map((at) => places[at] as Place)
      state.__tachoRan = new Set()
      state.__tachoBroken = place && places.indexOf(place)
      return ran
    },
  }
}
