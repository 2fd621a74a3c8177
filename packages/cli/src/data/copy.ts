import type { Command } from 'commander'
import { readDatabaseUrl } from './store.ts'
import { withJson, type OutputOptions } from '../engine/options.ts'
import { counted, printJson, printLine, spokenNumber } from '../engine/output.ts'
import { startProgress, type Progress } from '../engine/progress.ts'
import { failed } from '../engine/stop.ts'

interface Options extends OutputOptions {
  from: string
  to: string
  whileRunning?: true
  otherBuild?: true
}

/** The argument that stands for the database in TACHO_DATABASE_URL. */
const DATABASE = 'postgres:'

export function addCopy(command: Command): void {
  withJson(command)
    .requiredOption('--from <store>', 'sqlite:<directory>, postgres://…, or postgres: for TACHO_DATABASE_URL')
    .requiredOption('--to <store>', 'the same')
    .option('--while-running', 'copy a database while servers write to it; later writes are not copied')
    .option('--other-build', 'copy a file that another build made and this one refuses: what both schemas have')
    .addHelpText(
      'after',
      `
Stop all servers of both stores first. To resume an interrupted copy, repeat the command. No server opens the target
until the copy is complete. At the end, all tables of both stores are read again and compared.

Examples:
  TACHO_DATABASE_URL=postgres://tacho:…@db/tacho tacho copy --from sqlite:./data --to postgres:
  tacho copy --from postgres: --to sqlite:/var/lib/tacho --json`,
    )
    .action(copy)
}

async function copy({ from, to, whileRunning, otherBuild, json }: Options): Promise<void> {
  const [source, target] = [placeOf(from), placeOf(to)]
  const server = await import('@tacho/server/maintenance/copy.ts')
  const progress = progressOfPhases()
  const report = await copied()
  if (json) return printJson(report)
  const rows = `${counted(report.rows, 'row')} in ${counted(report.tables.length, 'table')}`
  const done = report.outcome === 'already_copied' ? 'were copied earlier' : 'copied'
  if (report.left.length > 0) printLine(`This version has no place for ${report.left.join(', ')}: left out.`)
  printLine(`${rows} ${done} from ${report.from} to ${report.to}; both stores are equal.`)

  async function copied() {
    try {
      const choices = { whileRunning: whileRunning === true, otherBuild: otherBuild === true }
      const options = { from: source, to: target, ...choices, onProgress: progress.update }
      return await server.copy(options)
    } catch (error) {
      throw error instanceof server.StoreRefused ? failed(error.message) : error
    } finally {
      await progress.end()
    }
  }
}

function placeOf(placeText: string): string {
  return placeText === DATABASE ? readDatabaseUrl() : placeText
}

const TITLES = { copy: 'Copy', verify: 'Verify' }
type Phase = keyof typeof TITLES

/** Shows one bar per phase; the first update of a phase has its total. */
function progressOfPhases() {
  let current: { phase: Phase; bar: Promise<Progress>; text: string } | null = null

  async function end(): Promise<void> {
    if (current === null) return
    const { bar, text } = current
    current = null
    ;(await bar).end(text)
  }

  function update(phase: Phase, rows: number, total: number, table: string): void {
    if (current?.phase !== phase) {
      const before = end()
      current = { phase, bar: before.then(() => startProgress(TITLES[phase], total)), text: '' }
    }
    const done = `${spokenNumber(rows)} of ${counted(total, 'row')}`
    current.text = `${TITLES[phase]}: ${done}`
    void current.bar.then((bar) => bar.update(rows, `${done}, ${table}`))
  }
  return { update, end }
}
