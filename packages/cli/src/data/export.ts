import { createWriteStream, existsSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Option, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { answered, type OperatorClient, type Input, unreachable } from '../engine/operator-client.ts'
import { findEnvironment } from '../tenants/tenants.ts'
import { checkedAt, checkedLines, encoderOf, formatOf, readExport, type Checked } from './export-file.ts'
import { runQuery, withRunFilters, type RunFilterOptions } from '../runs/filters.ts'
import { connect, inEnvironment } from '../engine/options.ts'
import { failed, Stop, wrongUsage } from '../engine/stop.ts'
import { printJson, printLine, spokenNumber, spokenBytes } from '../engine/output.ts'
import { printPeriod } from '../engine/period.ts'
import { startProgress, type Progress } from '../engine/progress.ts'
import { download, refuseExisting } from '../engine/files.ts'

interface Options extends RunFilterOptions {
  parquet?: ParquetTable
  output?: string
  resume?: true
}

export function addExport(command: Command): void {
  withRunFilters(inEnvironment(command))
    .option('-o, --output <file>', 'file to write; .gz and .zst are compressed; without it, or with -, standard output')
    .addOption(
      new Option('--parquet <table>', 'write a Parquet file for analysis: one row for each').choices(PARQUET_TABLES),
    )
    .option('--resume', 'continue an interrupted export of the same environment and filters')
    .addHelpText(
      'after',
      `
The file has events as they were sent, runs, approvals, issues, prompts, policies and deployments, one JSON object per line.
It has no people, keys or webhooks. The filters choose runs; everything else comes whole. The file gets its name when it
is complete; until then its name ends with .partial. An existing file is never overwritten. \`tacho restore-export\` writes
it into an empty environment.

With --parquet, the file has a row for each event or run instead, for DuckDB, pandas and others. It cannot be imported.

Examples:
  tacho export --environment acme/production -o production.jsonl.zst
  tacho export --environment acme/production -o production.jsonl.zst --resume
  tacho export --parquet events --from 30d -o events.parquet
  tacho export --status FAILED --from 7d | jq -c 'select(.type == "run")'`,
    )
    .action(exportRuns)
}

async function exportRuns(options: Options): Promise<void> {
  const { resume, agent, parquet: table } = options
  const output = options.output === '-' ? undefined : options.output
  if (output === undefined && (resume || options.json)) throw wrongUsage('--resume and --json need --output.')
  if (table !== undefined) {
    if (resume) throw wrongUsage('--resume cannot continue a Parquet file.')
    const { client, environmentId } = await connected(options)
    const query = { table, ...runQuery(options, Date.now()), ...(agent === undefined ? {} : { agent }) }
    printPeriod(query, options)
    return exportParquet(client, { params: { environmentId }, query }, { ...options, output })
  }
  const partial = `${output}.partial`
  if (output !== undefined && existsSync(output)) {
    throw failed(`${JSON.stringify(output)} already exists and is never overwritten.`)
  }
  if (output !== undefined && !resume && existsSync(partial)) {
    throw failed(`${JSON.stringify(partial)} is an interrupted export: continue it with --resume, or delete it.`)
  }
  const client = connect(options)
  const environment = await findEnvironment(client, options.environment)
  const query = { ...runQuery(options, Date.now()), ...(agent === undefined ? {} : { agent }) }
  printPeriod(query, options)
  const progress = await startProgress('Export', null)
  const checked = checkedAt(null)
  const whole = wholeExport(client, { environmentId: environment.id, query }, checked, progress)
  try {
    if (output === undefined) await pipeline(Readable.from(whole(null)), process.stdout, { end: false })
    else await writeFile(output, partial, resume && existsSync(partial) ? partial : null, whole)
  } finally {
    progress.end(`Export: ${spokenNumber(checked.state.lines)} lines`)
  }
  if (output === undefined) return
  const { counts, lines, sha256 } = checked.state
  if (options.json) printJson({ file: output, lines, counts, sha256 })
  else {
    const [runs, events] = [counts['run'] ?? 0, counts['event'] ?? 0]
    printLine(`Export of ${spokenNumber(runs)} runs with ${spokenNumber(events)} events written to ${output}.`)
  }
}

interface Wanted {
  environmentId: string
  query: ReturnType<typeof runQuery>
}

/** The text of the export after a mark, or from its beginning. Throws a Stop if it is incomplete or damaged. */
function wholeExport(client: OperatorClient, { environmentId, query }: Wanted, checked: Checked, progress: Progress) {
  return async function* (after: string | null): AsyncGenerator<string> {
    Object.assign(checked, checkedAt(after))
    const exportInput = { params: { environmentId }, query: { ...query, ...(after === null ? {} : { after }) } }
    const { value } = answered(client.url, await client.whole.exportEnvironment(exportInput))
    try {
      for await (const { text } of checkedLines(value, checked)) {
        progress.update(checked.state.lines, `${spokenNumber(checked.state.lines)} lines`)
        yield `${text}\n`
      }
    } catch (error) {
      if (error instanceof Stop) throw error
      throw failed(`The connection was lost. Repeat the command with --resume. ${unreachable(client.url, error)}`)
    }
    if (!checked.isComplete) throw failed('The connection was lost. Repeat the command with --resume.')
  }
}

/** `from`: the interrupted export to continue. The finished file replaces it. */
async function writeFile(
  output: string,
  partial: string,
  from: string | null,
  whole: (after: string | null) => AsyncGenerator<string>,
): Promise<void> {
  const fresh = from === null ? partial : `${partial}.new`
  async function* text(): AsyncGenerator<string> {
    let after: string | null = null
    if (from !== null) {
      for await (const some of keptOf(from, formatOf(output))) {
        after = some.after
        yield some.text
      }
      await rename(fresh, partial)
    }
    yield* whole(after)
  }
  try {
    await pipeline(Readable.from(text()), ...encoderOf(formatOf(output)), createWriteStream(fresh, { mode: 0o600 }))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof Stop || code === undefined) throw error
    throw failed(`${JSON.stringify(output)} cannot be written (${code}).`)
  }
  const handle = await open(partial, 'r')
  await handle.sync()
  await handle.close()
  await rename(partial, output)
  const directory = await open(path.dirname(output), 'r')
  await directory.sync()
  await directory.close()
}

/** The lines up to the last mark, in parts that each end with a mark. An interrupted file can end anywhere. */
async function* keptOf(file: string, format: ReturnType<typeof formatOf>) {
  let text = ''
  try {
    for await (const line of checkedLines(
      readExport(file, format, () => undefined),
      checkedAt(null),
    )) {
      text += `${line.text}\n`
      if (line.after === null) continue
      yield { text, after: line.after }
      text = ''
    }
  } catch {
    // Ignore the incomplete end: the next request reads it again.
  }
}

/** `tacho export --parquet`: runs or events as a file for analysis. */

const PARQUET_TABLES = ['events', 'runs'] as const
type ParquetTable = (typeof PARQUET_TABLES)[number]

async function exportParquet(
  client: OperatorClient,
  input: Input<'exportParquet'>,
  { output, json }: { output?: string | undefined; json?: true },
): Promise<void> {
  if (output !== undefined) refuseExisting(output)
  const reply = await client.exportParquet(input)
  if (output === undefined) return pipeline(Readable.fromWeb(reply), process.stdout, { end: false })
  const progress = await startProgress('Export', null)
  const onBytes = (bytes: number) => progress.update(bytes, spokenBytes(bytes))
  const bytes = await download(output, reply, { url: client.url, ending: 'PAR1', onBytes })
  progress.end(`Export: ${spokenBytes(bytes)}`)
  if (json) printJson({ file: output, table: input.query.table, bytes })
  else printLine(`Export of ${input.query.table} written to ${output} (${spokenBytes(bytes)}).`)
}
