/** The results of an experiment as a table, and as a page without scripts that loads nothing. */
import { duration } from '@tacho/contract/engine/format.ts'
import { printableJson } from '@tacho/contract/engine/shown-text.ts'
import { counted, spokenMoney, spokenNumber, type Column } from '../../engine/output.ts'
import type { Experiment, RunResult } from './experiment-folder.ts'
import { VERDICTS, type RunFacts } from './run-facts.ts'
import { sumLines, sumsOf } from './sums.ts'

export const RESULT_COLUMNS: Column[] = [
  { title: 'RESULT' },
  { title: 'RUN' },
  { title: 'OUTCOME' },
  { title: 'WAY' },
  { title: 'STEPS', align: 'right' },
  { title: 'COST', align: 'right' },
  { title: 'TOKENS', align: 'right' },
  { title: 'MODELS', align: 'right', isOptional: true },
  { title: 'SCORES', isOptional: true },
  { title: 'MEASURE', align: 'right', isOptional: true },
]

/** Runs that got worse first, then those that got better. */
export function inOrder(results: Iterable<RunResult>): RunResult[] {
  return [...results].sort(
    (a, b) => VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict) || (a.run < b.run ? -1 : 1),
  )
}

export function resultCells(result: RunResult): string[] {
  const { run, before, after, way, measure, verdict, isTimedOut } = result
  const sides = (read: (facts: RunFacts) => string) => {
    const [one, other] = [read(before), read(after)]
    return one === other ? one : `${one} → ${other}`
  }
  const names = [...new Set([...Object.keys(before.scores), ...Object.keys(after.scores)])].sort()
  const score =
    (name: string) =>
    ({ scores }: RunFacts) =>
      scores[name] === undefined ? '–' : spokenNumber(scores[name])
  return [
    verdict,
    run,
    `${sides(({ outcome }) => outcome)}${isTimedOut ? ' (timeout)' : ''}`,
    way === null ? 'same' : `another at step ${way.step}`,
    sides(({ steps }) => spokenNumber(steps)),
    sides(({ cost }) => (cost === null ? 'unknown' : spokenMoney(Number(cost.toPrecision(3))))),
    sides(({ tokens }) => (tokens === null ? 'unknown' : spokenNumber(tokens))),
    sides(({ modelMs }) => duration(modelMs)),
    names.map((name) => `${name} ${sides(score(name))}`).join(', '),
    measure === null ? '' : spokenNumber(Number(measure.toPrecision(6))),
  ]
}

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])
/**
 * Escapes a text and keeps its line breaks. Direction marks and invisible characters become visible, because they could
 * change the displayed order.
 */
const escaped = (text: string): string => printableJson(text).replace(/[&<>"']/g, (one) => ENTITIES.get(one) ?? one)

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}th{white-space:nowrap}
.worse{background:#fdecea}.better{background:#e9f6ec}pre{white-space:pre-wrap;margin:.2rem 0;font-size:12px;color:#555}code{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}th,td{border-color:#333}.worse{background:#3a1d1b}.better{background:#183122}pre{color:#aaa}}`

export function reportPage(experiment: Experiment, all: ReadonlyMap<string, RunResult>): string {
  const { name, begunAt, settings, chosen, leftOut } = experiment
  const results = inOrder(all.values())
  const head = RESULT_COLUMNS.map(({ title }) => `<th scope="col">${title}</th>`).join('')
  const rows = results.map((result) => {
    const cells = resultCells(result).map((cell) => `<td>${escaped(cell)}</td>`)
    const colour = result.verdict === 'worse' || result.verdict === 'better' ? ` class="${result.verdict}"` : ''
    const sentence = result.way
      ? `<tr><td></td><td colspan="${cells.length - 1}"><pre>${escaped(result.way.sentence)}</pre></td></tr>`
      : ''
    return `<tr${colour}>${cells.join('')}</tr>${sentence}`
  })
  const facts: [string, string][] = [
    ['Runs', `${settings.runs}, in ${settings.environment}`],
    ['Command', settings.command.join(' ')],
    ['Prompts', settings.prompts.map((prompt) => `${prompt.name}@${prompt.version}`).join(', ') || 'those of each run'],
    ['Policies', settings.policies?.map(({ policyId }) => policyId).join(', ') ?? 'those of each run'],
    ['Begun', begunAt],
    ['Replayed', `${results.length} of ${chosen.length}`],
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Experiment ${escaped(name)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Experiment ${escaped(name)}</h1>
<table>${facts.map(([term, value]) => `<tr><th scope="row">${term}</th><td><code>${escaped(value)}</code></td></tr>`).join('')}</table>
<h2>Sums</h2>
<ul>${sumLines(sumsOf(results))
    .map((line) => `<li>${escaped(line)}</li>`)
    .join('')}</ul>
<h2>Runs, before → now</h2>
<table><thead><tr>${head}</tr></thead><tbody>
${rows.join('\n')}
</tbody></table>
${
  leftOut.length === 0
    ? ''
    : `<h2>${counted(leftOut.length, 'run')} that cannot be replayed</h2>
<ul>${leftOut.map(({ run, why }) => `<li><code>${escaped(run)}</code>: ${escaped(why)}</li>`).join('')}</ul>`
}
</body>
</html>
`
}
