/**
 * npm run bench:agentdojo                    measures all and writes the tables of docs/firewall.md; 15 minutes on two cores
 * npm run bench:agentdojo -- banking slack   measures only these suites; prints, and writes nothing
 *
 * The first run installs AgentDojo into .cache; after that, no network is used. TEST_TRANSCRIPTS names the recorded runs of
 * tau-bench's airline; without them, their row is missing.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { pythonEnvironment } from '../../packages/sdk-conformance/test/python.ts'
import { ROOT } from '../src/place.ts'
import { honestTable, remainingTable, suiteTable, wholeTable, type Row } from './tables.ts'

const SUITES = ['banking', 'slack', 'travel', 'workspace']
/** From loose to strict. */
const RULES = [
  'none',
  'trifecta',
  'strangers',
  'named',
  'asked',
  'asked+strangers',
  'careful',
  'asked+named',
  'strict',
  'after-reading',
  'every-change',
]
const HONEST_RULES = ['asked', 'named', 'asked+named']
const PAGE = path.join(ROOT, 'docs/firewall.md')
const TRANSCRIPTS = path.resolve(ROOT, '../shared/data/tau-airline/runs.jsonl')
const LIMIT_MS = 3_600_000

const python = pythonEnvironment(path.join(import.meta.dirname, 'requirements.txt'), true)

python.install()
const missing = python.whyNot()
if (missing) stop(missing)
const chosen = process.argv.slice(2)
const unknown = chosen.filter((suite) => !SUITES.includes(suite))
if (unknown.length > 0) stop(`There is no suite ${unknown.join(', ')}. The suites: ${SUITES.join(', ')}.`)

const suites = chosen.length > 0 ? chosen : SUITES
const rows = (await Promise.all(suites.map((suite) => measured('dojo.py', suite, RULES.join(','))))).flat()
const parts = [
  wholeTable(rows, RULES),
  suiteTable(rows, RULES, suites),
  remainingTable(rows, ['asked+strangers', 'careful', 'asked+named']),
]
if (chosen.length === 0) parts.push(honestTable(await measured('honest.py', HONEST_RULES.join(',')), HONEST_RULES))
for (const part of parts) console.log(`${part.join('\n')}\n`)
if (chosen.length === 0) write(parts)

/** One process, which prints a line of JSON for each run of a task. */
async function measured(program: string, ...options: string[]): Promise<Row[]> {
  const env = {
    ...process.env,
    PYTHONPATH: path.join(ROOT, 'sdks/python/src'),
    TEST_TRANSCRIPTS: process.env['TEST_TRANSCRIPTS'] ?? (existsSync(TRANSCRIPTS) ? TRANSCRIPTS : ''),
  }
  const args = [path.join(import.meta.dirname, program), ...options]
  const child = spawn(python.interpreter, args, { stdio: ['ignore', 'pipe', 'pipe'], env, timeout: LIMIT_MS })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-2_000)))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const found: Row[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    found.push(JSON.parse(line) as Row)
    if (found.length % 500 === 0) console.error(`${options[0] ?? program}: ${found.length} runs`)
  }
  const code = await ended
  if (code !== 0) stop(`${program} ${options.join(' ')} ended with ${code}\n${errors}`)
  return found
}

/** Each table stands between two comments of the page. */
function write(tables: readonly string[][]): void {
  let page = readFileSync(PAGE, 'utf8')
  for (const [at, name] of ['whole', 'suites', 'remaining', 'honest'].entries()) {
    const [before, after] = [`<!-- npm run bench:agentdojo: ${name} -->`, `<!-- end of ${name} -->`]
    const begin = page.indexOf(before)
    const end = page.indexOf(after)
    if (begin < 0 || end < begin) stop(`${PAGE} has no place for the table ${name}`)
    page = `${page.slice(0, begin + before.length)}\n\n${tables[at]?.join('\n')}\n\n${page.slice(end)}`
  }
  writeFileSync(PAGE, page)
}

function stop(sentence: string): never {
  console.error(`bench:agentdojo: ${sentence}`)
  process.exit(2)
}
