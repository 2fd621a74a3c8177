/** The JSON that commands print: unchanged, or filtered by the jq program of --jq. */
import { failed, wrongUsage } from '../stop.ts'
import { printableJson } from '@tacho/contract/shown-text.ts'

/** jq needs a document whole. */
const MOST_CHARS = 128 * 1024 ** 2
/** jq: the program does not compile. */
const SYNTAX_ERROR = 3

const sink: { program: string | null; parts: string[]; chars: number; lines: Promise<void> } = {
  program: null,
  parts: [],
  chars: 0,
  lines: Promise.resolve(),
}

/** The flag --jq. */
export function filterJson(program: string): void {
  sink.program = program
}

/** A part of one document. */
export function writeJson(text: string): void {
  if (sink.program === null) {
    process.stdout.write(printableJson(text))
    return
  }
  sink.chars += text.length
  if (sink.chars > MOST_CHARS) throw failed('There is too much JSON for --jq: use -n, or jq itself.')
  sink.parts.push(text)
}

/** A document of its own, in endless output. */
export function writeJsonLine(line: string): void {
  const { program } = sink
  if (program === null) process.stdout.write(printableJson(line))
  else sink.lines = sink.lines.then(() => printFiltered(line, program))
}

/** Call when a command is done. */
export async function finishJson(): Promise<void> {
  await sink.lines
  if (sink.program !== null && sink.parts.length > 0) await printFiltered(sink.parts.join(''), sink.program)
}

async function printFiltered(json: string, program: string): Promise<void> {
  const { raw } = await import('jq-wasm')
  // Texts without quotes, as scripts want them.
  const { stdout, stderr, exitCode } = await raw(json, program, ['-r'])
  if (stdout !== '') process.stdout.write(`${process.stdout.isTTY ? printableJson(stdout) : stdout}\n`)
  if (exitCode === SYNTAX_ERROR) throw wrongUsage(`--jq: ${firstLine(stderr)}`)
  if (exitCode !== 0) throw failed(`--jq: ${firstLine(stderr)}`)
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
