/** Chooses the runs of an experiment and gets a tape of each. Lists runs that cannot be replayed, with the reason. */
import { readFile } from 'node:fs/promises'
import { Refused } from '../../engine/operator-client.ts'
import { counted } from '../../engine/output.ts'
import { Stop } from '../../engine/stop.ts'
import { runChunks } from '../../runs/list.ts'
import { runFiltersIn } from '../../runs/filters.ts'
import { datasetFile, isThere, type Dataset } from '../tape/dataset-file.ts'
import { maskedTape, tapeOfRun, type RunSource } from '../tape/read-run.ts'
import { readTape, type Tape } from '../tape/tape.ts'
import { tapeIn, tapeName } from '../tape-files.ts'
import type { ChosenRun, LeftOutRun } from './experiment-folder.ts'

export interface WantedRun {
  run: string
  scores: Record<string, number>
}

/** The newest runs that match a filter. Leaves out replays: a filter of failed runs would find failed replays too. */
export async function runsOf(source: RunSource, filters: string, limit: number) {
  const pageState = { hasMore: false }
  const { query, agent } = runFiltersIn(filters, Date.now())
  const wanted: WantedRun[] = []
  const everyRun = { query, agent, limit: Number.POSITIVE_INFINITY }
  for await (const runs of runChunks(source.client, source.environmentId, everyRun, pageState)) {
    for (const { runId, scores, metadata } of runs) {
      if (Object.hasOwn(metadata, 'replayOf')) continue
      if (wanted.length === limit) return { wanted, hasMore: true }
      const means = scores.flatMap(({ name, mean }): [string, number][] => (mean === null ? [] : [[name, mean]]))
      wanted.push({ run: runId, scores: Object.fromEntries(means) })
    }
  }
  return { wanted, hasMore: false }
}

const AT_ONCE = 4

/** @param write writes a text to a file, and returns its name. Reads each run once. */
export async function tapesOf(
  source: RunSource,
  wanted: readonly WantedRun[],
  write: (name: string, text: string) => string,
): Promise<{ chosen: ChosenRun[]; leftOut: LeftOutRun[] }> {
  const results: (ChosenRun | LeftOutRun)[] = []
  const next = wanted.entries()
  const work = async () => {
    for (const [at, one] of next) results[at] = await tapeFor(source, one, write)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return {
    chosen: results.filter((one): one is ChosenRun => 'tape' in one),
    leftOut: results.filter((one): one is LeftOutRun => 'why' in one),
  }
}

async function tapeFor(
  source: RunSource,
  { run, scores }: WantedRun,
  write: (name: string, text: string) => string,
): Promise<ChosenRun | LeftOutRun> {
  try {
    const tape = await tapeOfRun(source, run)
    const why = whyNot(tape)
    if (why !== undefined) return { run, why }
    const text = await maskedTape(tape, {})
    const { checksum } = readTape(Buffer.from(text)).head
    return { run, tape: write(tapeName(run, checksum), text), checksum, scores }
  } catch (error) {
    // The run was erased meanwhile, is too long, or today's masks would change it.
    if (error instanceof Stop && !(error instanceof Refused)) return { run, why: error.message }
    throw error
  }
}

/** Each run once, with its newest tape, because results are stored by run. */
export async function tapesOfDataset(
  dataset: Dataset,
  write: (name: string, text: string) => string,
): Promise<{ chosen: ChosenRun[]; leftOut: LeftOutRun[] }> {
  const byRun = new Map<string, ChosenRun>()
  const leftOut: LeftOutRun[] = []
  for (const tape of dataset.tapes) {
    const { run, checksum, scores } = tape
    const file = datasetFile(dataset, tape)
    const read = isThere(dataset, tape) ? await tapeIn(file) : null
    const isOther = read !== null && read.head.checksum !== checksum
    const why =
      read === null
        ? 'its tape was removed from the dataset'
        : isOther
          ? 'its file in the dataset is another tape'
          : whyNot(read)
    if (why !== undefined) leftOut.push({ run, why })
    else byRun.set(run, { run, tape: write(tapeName(run, checksum), await readFile(file, 'utf8')), checksum, scores })
  }
  return { chosen: [...byRun.values()], leftOut }
}

/** Why a tape cannot be replayed with live models; their recorded answers do not matter. */
export function whyNot({ head, steps }: Tape): string | undefined {
  const models = new Set(steps.flatMap(({ kind, step }) => (kind === 'model' ? [step] : [])))
  const obstacles = head.replayable === true ? [] : head.replayable.filter(({ step }) => !models.has(step))
  const [first] = obstacles
  if (!first) return undefined
  const place = first.step === 0 ? '' : `step ${first.step}: `
  const more = obstacles.length - 1
  return `${place}${first.why}${more > 0 ? `, and ${counted(more, 'more obstacle')}` : ''}`
}
