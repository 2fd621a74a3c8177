import type { Command } from 'commander'
import { readDatabaseUrl } from '../database-url.ts'
import { withJson, type OutputOptions } from '../options.ts'
import { counted, printJson, printLine, spokenNumber } from '../output.ts'
import { startProgress, type Progress } from '../progress.ts'
import { failed } from '../stop.ts'

interface Options extends OutputOptions {
  from: string
  to: string
  whileRunning?: true
}

/** Stands for the database that TACHO_DATABASE_URL names. */
const DATABASE = 'postgres:'

export function addCopy(program: Command): void {
  withJson(program.command('copy').description('copy a whole installation from one store into another, empty one'))
    .requiredOption('--from <store>', 'sqlite:<directory>, postgres://…, or postgres: for TACHO_DATABASE_URL')
    .requiredOption('--to <store>', 'the same')
    .option('--while-running', 'take a database as it is now, though servers write to it; what they add is not copied')
    .addHelpText(
      'after',
      `
No server may run on either store. An interrupted copy goes on where it was when the command is given again; until it has
ended, no server opens the target. At the end every table is read again on both sides and compared.

Examples:
  TACHO_DATABASE_URL=postgres://tacho:…@db/tacho tacho copy --from sqlite:./data --to postgres:
  tacho copy --from postgres: --to sqlite:/var/lib/tacho --json`,
    )
    .action(copy)
}

async function copy({ from, to, whileRunning, json }: Options): Promise<void> {
  const [source, target] = [placeOf(from), placeOf(to)]
  const server = await import('@tacho/server/maintenance/copy.ts')
  const progress = progressOfPhases()
  const report = await copied()
  if (json) return printJson(report)
  const rows = `${counted(report.rows, 'row')} in ${counted(report.tables.length, 'table')}`
  const done = report.outcome === 'already_copied' ? 'had been copied before' : 'copied'
  printLine(`${rows} ${done} from ${report.from} to ${report.to}; both hold the same.`)

  async function copied() {
    try {
      const options = { from: source, to: target, whileRunning: whileRunning === true, onProgress: progress.update }
      return await server.copy(options)
    } catch (error) {
      throw error instanceof server.StoreRefused ? failed(error.message) : error
    } finally {
      await progress.end()
    }
  }
}

function placeOf(given: string): string {
  return given === DATABASE ? readDatabaseUrl() : given
}

const TITLES = { copy: 'Copy', verify: 'Verify' }
type Phase = keyof typeof TITLES

/** One bar after the other; how many rows there are is known with the first of them. */
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
