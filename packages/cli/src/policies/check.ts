/** `tacho policies check`: compiles conditions locally, without a server. */
import { compileCondition } from '@tacho/policy/compile.ts'
import type { Fault } from '@tacho/policy/language/position.ts'
import { printJson, printLine, printable } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'
import { readCondition } from './source-file.ts'
import { findPlace } from '../tenants/tenants.ts'
import { connect, type EnvironmentOptions } from '../engine/options.ts'
import { warningsOf } from './recorded-calls.ts'

interface CheckOptions extends EnvironmentOptions {
  condition?: string
}

const COST_NOTE =
  'note: run.cost is the sum of the costs that the agent recorded. It stays 0 if its integration records none; run.totalTokens counts for all.'

export async function check(files: string[], options: CheckOptions): Promise<void> {
  const sources = await readSources(files, options.condition)
  const compared = await comparedWith(options)
  const checked = await Promise.all(
    sources.map(async ({ name, source }) => {
      const compiled = compileCondition(source)
      const readsCost = compiled.ok && compiled.condition.names.has('run.cost')
      return {
        name,
        source,
        faults: compiled.ok ? [] : [...compiled.faults],
        notes: [...(readsCost ? [COST_NOTE] : []), ...(compiled.ok ? await compared(source) : [])],
      }
    }),
  )
  if (checked.some(({ faults }) => faults.length > 0)) process.exitCode = 1
  if (options.json) {
    return printJson({
      items: checked.map(({ name, faults, notes }) => ({ name, ok: faults.length === 0, faults, notes })),
    })
  }
  for (const { name, source, faults, notes } of checked) {
    if (faults.length === 0) printLine(`${name}: valid`)
    for (const note of notes) printLine(`${name}: ${note}`)
    for (const fault of faults) for (const line of faultLines(name, source, fault)) printLine(line)
  }
}

/** With an environment, compares a condition with its recorded calls by a simulation, which changes nothing. */
async function comparedWith(options: CheckOptions): Promise<(condition: string) => Promise<string[]>> {
  if (options.environment === undefined) return () => Promise.resolve([])
  const client = connect(options)
  const { environment } = await findPlace(client, options.environment, '--environment')
  let before: Promise<unknown> = Promise.resolve()
  return (condition) => {
    const compared = before.then(() => warningsOf(client, environment.id, condition))
    before = compared.catch(() => undefined)
    return compared.then((messages) => messages.map((message) => `warning: ${message}`))
  }
}

async function readSources(
  files: string[],
  condition: string | undefined,
): Promise<{ name: string; source: string }[]> {
  if (condition !== undefined) {
    if (files.length > 0) throw wrongUsage('Give either files or --condition.')
    return [{ name: 'condition', source: condition }]
  }
  if (files.length === 0) throw wrongUsage('Give a file, or a condition with --condition.')
  const sources = []
  for (const file of files) {
    sources.push({ name: file === '-' ? 'stdin' : file, source: await readCondition(file) })
  }
  return sources
}

/** Rejects an invalid condition before sending anything. */
export function assertCondition(name: string, source: string): void {
  const compiled = compileCondition(source)
  if (compiled.ok) return
  const lines = compiled.faults.flatMap((fault) => faultLines(name, source, fault))
  throw wrongUsage(`The condition is invalid.\n${lines.join('\n')}`)
}

/** Shows where a condition is invalid. Pure. */

/**
 * Returns `name:2:6: <the fault>`, the source line, and a caret below the position. Tabs become one space, so that the
 * caret stays aligned.
 */
export function faultLines(name: string, source: string, { message, position }: Fault): string[] {
  const { line, column, offset, endOffset } = position
  const text = source.split(/\r\n|\r|\n/)[line - 1] ?? ''
  const marked = Math.max(1, Math.min((endOffset ?? offset + 1) - offset, text.length - column + 1))
  const before = shown(text.slice(0, column - 1))
  const place = shown(text.slice(column - 1, column - 1 + marked))
  const caret = `${' '.repeat(width(before))}^${'~'.repeat(Math.max(0, width(place) - 1))}`
  return [`${printable(name)}:${line}:${column}: ${printable(message)}`, `  ${shown(text)}`, `  ${caret}`]
}

function shown(text: string): string {
  return printable(text.replaceAll('\t', ' '))
}

function width(text: string): number {
  return Array.from(text).length
}
