import type { RunOutcome } from '@tacho/contract/runs/run.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { withJson, withUrl, type OutputOptions } from '../engine/options.ts'
import { printJson, printLine, spokenNumber } from '../engine/output.ts'
import { startProgress } from '../engine/progress.ts'
import { openRecorder } from './recorder-client.ts'
import { readApiKey } from '../engine/credentials.ts'
import { knownUrl } from '../engine/server-address.ts'
import { Stop, wrongUsage } from '../engine/stop.ts'
import { importLines, type Import } from './transcript/import-lines.ts'
import { newReport, spokenProblem, spokenReport, type ImportReport } from './transcript/import-report.ts'
import { HASH_CHARS, type ImportOptions } from './transcript/run-draft.ts'
import { SPAN_FORMATS, type SpanFormat } from './transcript/span-files.ts'

interface Options extends OutputOptions {
  url?: string
  agentName: string
  agentId?: string
  sessionField?: string
  fieldOutcome: string
  defaultOutcome?: RunOutcome
  runPrefix: string
  dryRun?: true
  format: 'openai' | SpanFormat
}

interface Target {
  url: string
  apiKey: string
}

const FORMATS = ['openai', ...SPAN_FORMATS]
const OUTCOMES: readonly RunOutcome[] = ['COMPLETED', 'FAILED', 'CANCELLED']

export function addImport(command: Command): void {
  withJson(withUrl(command))
    .addOption(new Option('--format <name>', 'format of the file').choices(FORMATS).default('openai'))
    .option('--agent-name <text>', 'name of the agent', text, 'Imported agent')
    .option('--agent-id <text>', 'stable external id of the agent', text)
    .option('--session-field <path>', 'field with the session id, such as user.id')
    .option('--field-outcome <path>', 'field with the outcome of the run', 'reward')
    .option('--default-outcome <status>', `outcome of runs without that field: ${OUTCOMES.join(', ')}`, parseOutcome)
    .option('--run-prefix <text>', 'prefix of run ids; the rest is a hash of the line', parsePrefix, 'import-')
    .option('--dry-run', 'check the file; send nothing')
    .addHelpText(
      'after',
      `
openai: one JSON object per line, with "messages" in OpenAI's chat format, or a request or answer of its Batch API. Each line becomes a run.
otlp: spans of OTLP/JSON, one request or span per line, as the Collector's file exporter writes them, or one request.
langfuse: traces with observations, or observations: the JSON or JSONL of its export or API.
phoenix: spans of its API, or rows of get_spans_dataframe() with to_json(): JSON or JSONL.
Each trace becomes a run. A run without an outcome is closed at its last time. Times are kept, also those older than 30
days. Importing a file again changes nothing, so repeat an import that was interrupted.
The API key in TACHO_API_KEY needs the scopes events:write and usage:read.
Outcomes: 1, true and words such as "COMPLETED" or "success" end a run as COMPLETED; 0, false, "FAILED" as FAILED;
"CANCELLED" as CANCELLED. Without the field, a line is FAILED if its last event is an error, else COMPLETED, unless --default-outcome is given.
Each line with a problem is reported, the other lines are imported, and the exit code is 1.

Examples:
  tacho import runs.jsonl --agent-name "Airline agent"
  tacho import chats.jsonl --session-field user.id --dry-run
  tacho import traces.jsonl --format langfuse
  zcat chats.jsonl.gz | tacho import - --json`,
    )
    .action(importFile)
}

function text(fieldText: string): string {
  if (fieldText !== '' && !fieldText.includes('\0')) return fieldText
  throw new InvalidArgumentError('It must not be empty.')
}

function parseOutcome(outcomeText: string): RunOutcome {
  const status = OUTCOMES.find((known) => known === outcomeText.toUpperCase())
  if (status !== undefined) return status
  throw new InvalidArgumentError(`It must be one of ${OUTCOMES.join(', ')}.`)
}

function parsePrefix(prefixText: string): string {
  if (Array.from(prefixText).length <= LIMITS.runIdChars - HASH_CHARS) return prefixText
  throw new InvalidArgumentError(`It must have at most ${LIMITS.runIdChars - HASH_CHARS} characters.`)
}

async function importFile(file: string, options: Options): Promise<void> {
  const dryRun = options.dryRun === true
  const target = dryRun ? null : { url: knownUrl(options.url), apiKey: readApiKey() }
  const report = newReport(file, dryRun)
  try {
    await run(file, report, target, options)
  } catch (error) {
    // Report the lines that were imported before the failure.
    if (error instanceof Stop && report.lines > 0) finish(report, options)
    throw error
  }
  finish(report, options)
}

/** @param target null: a dry run. */
async function run(file: string, report: ImportReport, target: Target | null, options: Options): Promise<void> {
  const source = await openSource(file)
  const progress = await startProgress('Import', source.bytes)
  const recorder = target && openRecorder(target.url, target.apiKey, { onTrouble: progress.note, isImport: true })
  let done = 0
  try {
    const parsedImport: Import = {
      options: importOptions(options),
      recorder,
      now: Date.now(),
      onProblem: (problem) => progress.note(spokenProblem(problem)),
      onProgress(bytes) {
        done += bytes
        progress.update(Math.min(done, source.bytes ?? done), `${spokenNumber(report.runs)} runs`)
      },
    }
    if (options.format === 'openai') await importLines(source.stream, report, parsedImport)
    else {
      // The protobuf reader is loaded only here.
      const { importSpans } = await import('./transcript/import-spans.ts')
      await importSpans(source.stream, options.format, report, parsedImport)
    }
  } finally {
    progress.end(`Import: ${spokenNumber(report.runs)} runs`)
  }
}

function importOptions(options: Options): ImportOptions {
  return {
    agentName: options.agentName,
    agentId: options.agentId ?? null,
    runPrefix: options.runPrefix,
    sessionField: options.sessionField ?? null,
    outcomeField: options.fieldOutcome,
    defaultOutcome: options.defaultOutcome ?? null,
  }
}

function finish(report: ImportReport, options: Options): void {
  if (report.problemLines > 0) process.exitCode = 1
  if (options.json) printJson(report)
  else for (const line of spokenReport(report, options, FORMATS)) printLine(line)
}

/** The bytes of the file or of standard input. A read error ends the command with a sentence. */
async function openSource(file: string): Promise<{ stream: AsyncIterable<Uint8Array>; bytes: number | null }> {
  if (file === '-') return { stream: process.stdin, bytes: null }
  const trouble = (error: unknown): Stop => {
    const { code } = error as NodeJS.ErrnoException
    const reason = { ENOENT: 'does not exist', EISDIR: 'is a directory', EACCES: 'cannot be read: permission denied' }[
      code ?? ''
    ]
    return wrongUsage(`${JSON.stringify(file)} ${reason ?? `cannot be read (${code})`}.`)
  }
  const { size } = await stat(file).catch((error: unknown) => Promise.reject(trouble(error)))
  const stream = createReadStream(file)
  return {
    bytes: size,
    stream: (async function* () {
      const chunks = stream[Symbol.asyncIterator]()
      for (;;) {
        const next = await chunks.next().catch((error: unknown) => Promise.reject(trouble(error)))
        if (next.done) return
        yield next.value as Uint8Array
      }
    })(),
  }
}
