import path from 'node:path'
import { readSource, readText } from '../source-file.ts'
import { wrongUsage, type Stop } from '../../engine/stop.ts'
import { printable } from '../../engine/output.ts'
import type { FileFault, Manifest } from './manifest.ts'
import { readManifest } from './read-manifest.ts'

/** `-` is standard input. Files that it names are beside it. */
export async function manifestOf(file: string): Promise<Manifest> {
  const directory = file === '-' ? process.cwd() : path.dirname(path.resolve(file))
  const read = readManifest(await readSource(file), (name) => readText(path.resolve(directory, name)))
  if (!read.ok) throw faultyFile(file, read.faults)
  return read.manifest
}

export function faultyFile(file: string, faults: FileFault[]): Stop {
  const lines = faults.map(({ place, message }) => `${printable(file)}:${place.line}:${place.column}: ${message}`)
  return wrongUsage(`The file is invalid; nothing was changed.\n${lines.join('\n')}`)
}
