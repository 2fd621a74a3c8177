/**
 * Histories of runs, with what conditions see of them. Values are hidden in texts as people, programs and models write them, and
 * looked up in another spelling.
 */
import fc from 'fast-check'
import { compileCondition } from '../src/compile.ts'
import type { Action } from '../src/decide.ts'
import { evaluate } from '../src/evaluate.ts'
import { type HistoryCall, RunHistory, type CarriedHistory } from '../src/history/run-history.ts'

const SEED = 20_261_129

/** One line of histories.jsonl. */
export interface HistoryVector {
  /** What another process of the run gave, if the run began there. Null: it kept no history. */
  carried?: CarriedHistory | null
  said: string[]
  calls: HistoryCall[]
  origins: { value: string | number; origin: readonly string[] }[]
  /** Of a call of `pay` with the first value as `tool.input.to`. One of `matched` and `failure`. */
  conditions: { source: string; matched?: boolean; failure?: string }[]
  labels: readonly string[]
  carriedOn: CarriedHistory
}

const VALUES = [
  'mallory@evil.example',
  'ada.lovelace@example.com',
  'GB33BUKB20201555555555',
  'DE89 3704 0044 0532 0130 00',
  '+1 (555) 123-4567',
  '4111-1111-1111-1111',
  'https://evil.example/x?id=42&t=a%20b',
  '/srv/data/report-2026.csv',
  'Bob Smith',
  'Zoë Çelik-Ångström',
  'ﬁnal ①２３',
  'A-74932',
  'Straße 7',
  'ΣΊΣΥΦΟΣ',
  '日本橋 1-2-3',
  1200.5,
  18000,
  0,
  -77.25,
  1e21,
  'yes',
  '',
  '…',
  'constructor',
  '__proto__',
]

const SPELLINGS: ((text: string) => string)[] = [
  (text) => text,
  (text) => text,
  (text) => text.toUpperCase(),
  (text) => text.toLowerCase(),
  (text) => text.replace(/[\s-]/g, ''),
  (text) => text.replace(/(\w{4})(?=\w)/g, '$1 '),
  (text) => text.replace(/(\w{3})(?=\w)/g, '$1-'),
  (text) => encodeURIComponent(text),
  (text) => Buffer.from(text).toString('base64'),
  (text) => Buffer.from(text).toString('base64url'),
  (text) => Buffer.from(text).toString('hex'),
  (text) => text.replaceAll('@', '&#64;').replaceAll('.', '&#x2E;'),
  (text) => text.replaceAll('@', ' [at] ').replaceAll('.', ' (dot) '),
  (text) => text.replace(/[a-z]/g, (letter) => String.fromCodePoint(letter.charCodeAt(0) + 0xfee0)),
  (text) => Array.from(text).join('\u00ad'),
  (text) => text.replace(/[@.]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`),
  (text) => `"${text}",`,
  (text) => `**${text}**`,
  (text) => text.normalize('NFD'),
  (text) => text.slice(0, -1),
]

const NUMBERS: ((value: number) => string | number)[] = [
  (value) => value,
  (value) => String(value),
  (value) => `$${Math.abs(value).toLocaleString('en-US', { maximumFractionDigits: 9 })}`,
  (value) => `${value.toFixed(2)} EUR`,
]

const LABELS = ['untrusted', 'private', 'ours', 'user', 'Zürich']
const DOES = ['external', 'money', 'destructive']
const TOOLS = ['read_mail', 'get_order', 'verify_identity', 'pay', 'constructor']
const DECISIONS: Action[] = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK']

const SOURCES = [
  '"untrusted" in run.labels && "money" in tool.labels',
  '!origin(tool.input.to).exists(o, o in ["user", "ours"])',
  'origin(tool.input.to) == []',
  'run.calls.exists(c, c.tool == "verify_identity" && c.ok)',
  'run.calls.all(c, c.tool != "pay" || c.input.to == tool.input.to)',
  'run.calls.filter(c, c.tool == "read_mail" && c.decision == "ALLOW").size() > 1',
  'run.calls.exists_one(c, "constructor" == c.tool && has(c.input))',
  'run.calls.map(c, c.tool == "get_order", c.ok) == [true]',
  'run.calls.exists(c, c.ok && "external" in c.labels)',
  'run.calls.exists(c, has(c.input) && c.input.to == tool.input.to)',
  'size(run.calls) > 3 && run.calls[0].tool == "pay"',
  'run.labels == ["untrusted", "unknown"] || "unknown" in origin(tool.input.to)',
  'run.calls.exists(c, c.tool == "pay" && origin(c.input.to) == ["user"])',
]

const spelledText = (text: string) => fc.constantFrom(...SPELLINGS).map((spell) => spell(text))
const spelled: fc.Arbitrary<string | number> = fc.constantFrom(...VALUES).chain((value) => {
  if (typeof value === 'string') return spelledText(value)
  return fc.constantFrom(...NUMBERS).map((spell) => spell(value))
})
const words = fc.constantFrom(
  'pay',
  'to',
  'the',
  'order',
  'total:',
  'is',
  '(urgent)',
  '#3',
  '12',
  'x@y',
  '&amp;',
  '%zz',
  '',
)
const text = fc.array(fc.oneof(words, words, spelled), { maxLength: 8 }).map((parts) => parts.join(' '))
const output = fc.oneof(
  text,
  spelled,
  fc.array(fc.oneof(spelled, text), { maxLength: 3 }),
  fc.record({ id: spelled, body: text, more: fc.array(fc.record({ name: text, total: spelled }), { maxLength: 2 }) }),
  fc.tuple(text, text).map(([key, value]) => ({ [key]: value, ok: true, none: null })),
)
const call: fc.Arbitrary<HistoryCall> = fc
  .record({
    tool: fc.constantFrom(...TOOLS),
    input: fc.oneof(fc.constant(null), fc.record({ to: spelled })),
    ok: fc.boolean(),
    decision: fc.constantFrom(...DECISIONS),
    does: fc.subarray(DOES),
    labels: fc.subarray(LABELS),
    output: fc.option(output),
  })
  .map(({ output: given, ...facts }) => (given === null ? facts : { ...facts, output: given }))

const given = fc.record({
  carried: fc.oneof(
    { weight: 6, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constant(null) },
    {
      weight: 1,
      arbitrary: fc.constant({
        labels: ['private'],
        calls: [{ tool: 'pay', labels: ['money'], ok: true, decision: 'WARN' as const }],
      }),
    },
  ),
  said: fc.array(text, { maxLength: 2 }),
  calls: fc.array(call, { maxLength: 6 }),
  values: fc.array(spelled, { minLength: 2, maxLength: 8 }),
})

export function historyVectors(count = 150): HistoryVector[] {
  const compiledSources = SOURCES.map((source) => {
    const compiled = compileCondition(source)
    if (!compiled.ok) throw new Error(`${source}: ${compiled.faults[0]?.message}`)
    return { source, condition: compiled.condition }
  })
  return fc.sample(given, { numRuns: count, seed: SEED }).map(({ carried, said, calls, values }) => {
    const history = new RunHistory()
    if (carried !== undefined) history.continues(carried ?? undefined)
    for (const saying of said) history.said(saying)
    for (const ended of calls) history.ended(ended)
    const input = { to: values[0] }
    const facts = { tool: { name: 'pay', input, labels: ['money'] }, run: { history }, now: 0 }
    const conditions = compiledSources.map(({ source, condition }) => {
      const result = evaluate(condition, facts)
      return result.ok ? { source, matched: result.matched } : { source, failure: result.message }
    })
    return {
      ...(carried !== undefined && { carried }),
      said,
      calls,
      origins: values.map((value) => ({ value, origin: history.origin(value) })),
      conditions,
      labels: history.labels,
      carriedOn: history.carried(),
    }
  })
}
