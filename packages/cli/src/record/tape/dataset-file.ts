/**
 * A dataset: tapes with a name and versions, in a folder beside the code. `versions.jsonl` has a line for each change.
 * `tapes` has the files, which no later version removes. So `name@3` always means the same runs, even after retention
 * has removed them.
 */
import { appendFileSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { printable } from '../../engine/output.ts'
import { failed, wrongUsage } from '../../engine/stop.ts'
import { tapeName } from '../tape-files.ts'

export interface DatasetTape {
  run: string
  checksum: string
  /** Scores at the time at which the tape was added. */
  scores: Record<string, number>
}

export interface DatasetVersion {
  version: number
  at: string
  /** The reason for the version: its command, such as `--runs "status=FAILED"`. */
  why: string
  added: DatasetTape[]
  /** Checksums of removed tapes. */
  removed: string[]
}

export interface Dataset {
  name: string
  folder: string
  version: number
  versions: DatasetVersion[]
  /** Tapes of this version. */
  tapes: DatasetTape[]
}

const VERSIONS = 'versions.jsonl'
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/i
export const DATASET_TAPES_MAX = 10_000

export function createDataset(place: string, name: string): Dataset {
  if (!NAME.test(name)) throw wrongUsage('The name of a dataset has letters, digits, dots, hyphens and underscores.')
  const folder = path.join(place, name)
  if (existsSync(path.join(folder, VERSIONS))) throw failed(`The dataset ${JSON.stringify(name)} exists already.`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, VERSIONS), '', { flag: 'wx' })
  return changeDataset(
    { name, folder, version: 0, versions: [], tapes: [] },
    { why: 'created', added: [], removed: [] },
  )
}

/** @param named a name, `airline`, or a name with a version, `airline@3`. */
export function readDataset(place: string, named: string): Dataset {
  const [, name = '', asked] = /^(.*?)(?:@(\d+))?$/s.exec(named) ?? []
  const folder = path.join(place, name)
  const file = path.join(folder, VERSIONS)
  if (!NAME.test(name) || !existsSync(file))
    throw failed(`There is no dataset ${JSON.stringify(name)} in ${printable(place)}: tacho dataset create makes one.`)
  // Accept only regular files: a pipe would wait for ever, a device never ends, and a link could lead a write
  // elsewhere.
  if (!lstatSync(file).isFile()) throw failed(`${printable(file)} is no regular file.`)
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  const versions = lines.map((line, at) => {
    const version = versionIn(line)
    if (version?.version !== at + 1) throw failed(`${printable(file)}:${at + 1} is not version ${at + 1}.`)
    return version
  })
  const version = asked === undefined ? versions.length : Number(asked)
  if (version < 1 || version > versions.length)
    throw failed(`${printable(name)} has versions 1 to ${versions.length}, not ${version}.`)
  const tapes = new Map<string, DatasetTape>()
  for (const { added, removed } of versions.slice(0, version)) {
    for (const tape of added) tapes.set(tape.checksum, tape)
    for (const checksum of removed) tapes.delete(checksum)
  }
  return { name, folder, version, versions, tapes: [...tapes.values()] }
}

function versionIn(line: string): DatasetVersion | undefined {
  try {
    const value = JSON.parse(line) as unknown
    if (!isObject(value)) return undefined
    const { at, why, added, removed } = value
    const isWhole = Array.isArray(added) && added.every(isTape) && Array.isArray(removed) && removed.every(isChecksum)
    return isWhole && typeof at === 'string' && typeof why === 'string'
      ? (value as unknown as DatasetVersion)
      : undefined
  } catch {
    return undefined
  }
}

/** Whether a value is a checksum, and so safe as part of a file name. */
const isChecksum = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

function isTape(value: unknown): boolean {
  if (!isObject(value) || typeof value['run'] !== 'string' || !isChecksum(value['checksum'])) return false
  const { scores } = value
  return isObject(scores) && Object.values(scores).every(Number.isFinite)
}

/** @returns the next version; the same dataset if nothing would change. */
export function changeDataset(dataset: Dataset, change: Omit<DatasetVersion, 'version' | 'at'>): Dataset {
  const version: DatasetVersion = { version: dataset.versions.length + 1, at: new Date().toISOString(), ...change }
  if (version.version > 1 && version.added.length + version.removed.length === 0) return dataset
  appendFileSync(path.join(dataset.folder, VERSIONS), `${JSON.stringify(version)}\n`, { flush: true })
  const removed = new Set(version.removed)
  const tapes = [...dataset.tapes.filter(({ checksum }) => !removed.has(checksum)), ...version.added]
  return { ...dataset, version: version.version, versions: [...dataset.versions, version], tapes }
}

export function datasetFile({ folder }: Dataset, { run, checksum }: DatasetTape): string {
  return path.join(folder, 'tapes', tapeName(run, checksum))
}

export function keepTape(dataset: Dataset, tape: DatasetTape, text: string): void {
  const file = datasetFile(dataset, tape)
  const tapes = path.dirname(file)
  mkdirSync(tapes, { recursive: true })
  // Refuse a link, which somebody else may have put there.
  if (!lstatSync(tapes).isDirectory()) throw failed(`${printable(tapes)} is a link.`)
  if (!existsSync(file)) writeFileSync(file, text, { flag: 'wx' })
}

/** Whether the file of a tape exists. Somebody may have deleted it, for example after an erasure. */
export const isThere = (dataset: Dataset, tape: DatasetTape): boolean => existsSync(datasetFile(dataset, tape))

export function datasetsIn(place: string): Dataset[] {
  if (!existsSync(place)) return []
  const names = readdirSync(place).filter((name) => existsSync(path.join(place, name, VERSIONS)))
  return names.sort().map((name) => readDataset(place, name))
}
