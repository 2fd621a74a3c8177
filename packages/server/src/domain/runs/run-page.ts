import { hash } from 'node:crypto'
import { duration } from '@tacho/contract/engine/format.ts'
import { indented } from '@tacho/contract/record/json-text.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { IssueSummary } from '@tacho/contract/issues/issue.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { stalledMs } from '@tacho/contract/runs/run-activity.ts'
import { costWords, tokenWords } from '@tacho/contract/runs/run-text.ts'
import { EVENT_TYPE_WORDS } from '@tacho/contract/engine/words.ts'
import type { EventRowRead } from '../../storage/record/events.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { failureLine, failureOf, isErrorEvent, whyEnded } from '@tacho/contract/issues/failure.ts'
import { NANOS, usageOf } from '../record/usage.ts'

/** The console's colours. The page has no other style, and no style attributes. */
const RUN_PAGE_STYLE = `
:root { color-scheme: light dark; --page: light-dark(#fff, #0d0e11); --raised: light-dark(#f7f7f8, #16181d);
  --line: light-dark(#e4e5e9, #282a31); --ink: light-dark(#16181d, #eceef2); --soft: light-dark(#555a65, #a3a8b3);
  --accent: light-dark(#4450d6, #98a2ff); --red: light-dark(#b4232a, #ff8a8a); --red-wash: light-dark(#fdecec, #3a1a1d);
  --amber: light-dark(#865200, #f2b755); --amber-wash: light-dark(#fdf3df, #35280f);
  --green: light-dark(#14703a, #5bd592); --green-wash: light-dark(#e6f6ec, #12301f); --violet: light-dark(#6b3fb5, #c3a0ff) }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: anywhere;
  font: .875rem/1.375rem system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
p { margin: 0 }
h1 { margin: .25rem 0 1rem; font-size: 1.3125rem; line-height: 1.75rem; font-weight: 600 }
h2 { margin: 2rem 0 .5rem; font-size: 1.0625rem; line-height: 1.5rem; font-weight: 600 }
.soft, dt, small, footer, time, .took { color: var(--soft) }
.chip { display: inline-block; padding: 0 .5rem; border-radius: .375rem; font-size: .75rem; line-height: 1.25rem;
  font-weight: 500; vertical-align: middle; background: var(--line) }
.good { background: var(--green-wash); color: var(--green) }
.bad { background: var(--red-wash); color: var(--red) }
.warn { background: var(--amber-wash); color: var(--amber) }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: .75rem 1.5rem; margin: 0;
  padding: 1rem; background: var(--raised); border: 1px solid var(--line); border-radius: .5rem }
dt { font-size: .75rem; line-height: 1rem }
dd { margin: 0 }
.note { margin-top: 1rem; padding: .5rem .75rem; border-radius: .375rem; background: var(--amber-wash); color: var(--amber) }
.why { margin-bottom: 1rem; padding: .5rem .75rem; border-radius: .375rem; font-weight: 500; background: var(--red-wash); color: var(--red) }
ul, ol { margin: 0; padding: 0; list-style: none }
ul li { padding: .625rem 0; border-top: 1px solid var(--line) }
ol { border-bottom: 1px solid var(--line) }
ol li { border-top: 1px solid var(--line); content-visibility: auto; contain-intrinsic-size: auto 2.125rem }
.row { display: grid; grid-template-columns: 5.5rem 5.5rem minmax(0, 1fr) 9rem 5rem; gap: 0 .75rem; align-items: baseline;
  padding: .375rem .25rem; list-style: none }
summary { cursor: pointer }
summary::-webkit-details-marker { display: none }
summary:hover { background: var(--raised) }
summary:focus-visible, pre:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px }
summary .label::after { content: ' +'; color: var(--soft) }
details[open] summary .label::after { content: ' \\2212' }
time, .took { font-variant-numeric: tabular-nums; font-size: .8125rem; text-align: right }
b { font-size: .75rem; font-weight: 500; color: var(--soft); white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
.label { padding-left: calc(var(--depth, 0) * 1rem) }
.d1 { --depth: 1 } .d2 { --depth: 2 } .d3 { --depth: 3 } .d4 { --depth: 4 }
.d5 { --depth: 5 } .d6 { --depth: 6 } .d7 { --depth: 7 } .d8 { --depth: 8 }
small { font-size: .8125rem }
small::before { content: '\\b7  '; color: var(--soft) }
svg { width: 100%; height: .5rem; align-self: center; background: var(--raised); border-radius: .125rem; fill: var(--soft) }
.user_input svg { fill: var(--green) } .user_input b { color: var(--green) }
.llm_call svg { fill: var(--violet) } .llm_call b { color: var(--violet) }
.tool_call svg { fill: var(--accent) } .tool_call b { color: var(--accent) }
.policy_decision svg { fill: var(--amber) } .policy_decision b { color: var(--amber) }
.failed svg { fill: var(--red) } .failed b, .failed small { color: var(--red) }
pre { margin: 0 0 .5rem; padding: .75rem; max-height: 36rem; overflow: auto; background: var(--raised);
  border: 1px solid var(--line); border-radius: .375rem; white-space: pre-wrap; tab-size: 2; unicode-bidi: plaintext;
  font: .75rem/1.125rem ui-monospace, 'SF Mono', 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace }
footer { margin-top: 2rem; font-size: .75rem }
@media (max-width: 44rem) {
  main { padding: 1.25rem 1rem 3rem }
  dl { grid-template-columns: 1fr; gap: .375rem }
  dl div { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); align-items: baseline }
  .row { grid-template-columns: 4.5rem minmax(0, 1fr) auto; padding: .5rem 0 }
  .label { grid-column: 1 / -1 }
  svg { grid-column: 1 / -1; height: .25rem; margin-top: .25rem }
  .took { grid-row: 1; grid-column: 3 }
  time { text-align: left }
}
@media print {
  pre { max-height: none; overflow: visible }
  ol li { content-visibility: visible; break-inside: avoid }
}
`

/** Markup has its own class, so that client data can never be taken for HTML. */
class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export function html(parts: TemplateStringsArray, ...values: (string | number | Html | Html[])[]): Html {
  let text = parts[0] ?? ''
  for (const [index, value] of values.entries()) text += textOf(value) + (parts[index + 1] ?? '')
  return new Html(text)
}

function textOf(value: string | number | Html | Html[]): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(({ text }) => text).join('')
  return escaped(String(value))
}

/** Markup, characters that move the text around them, and controls. Line breaks and tabs stay. */
// oxlint-disable-next-line no-control-regex
const UNSAFE = /[&<>"'\0-\b\v-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])

/** Shows controls and direction marks, because they could display another order than is stored. */
function escaped(text: string): string {
  return text.replace(
    UNSAFE,
    (character) => ENTITIES.get(character) ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

export interface RunFile {
  run: OperatorRun
  workspace: string
  environment: string
  issues: IssueSummary[]
  approvals: OperatorApproval[]
  hasPayloads: boolean
  writtenAt: number
}

/** Place and width are fractions of the whole run. Times are in milliseconds. */
export interface Step {
  row: EventRowRead
  depth: number
  left: number
  width: number
  since: number
  latency: number | null
}

export const RUN_PAGE_POLICY = `default-src 'none'; style-src 'sha256-${hash('sha256', RUN_PAGE_STYLE, 'base64')}'; base-uri 'none'; form-action 'none'`

/** The largest factor by which indenting lengthens a deep payload. */
const INDENTED_MOST = 3
const FACT_CHARS = 200

export function pageStart(file: RunFile, shown: { events: number; payloads: number }): string {
  const { run, issues, approvals } = file
  const title = `Run ${run.runId}: ${run.status}`
  const start = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${RUN_PAGE_POLICY}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="referrer" content="no-referrer" />
        <title>${title}</title>
     `
  const body = html`</head>
    <body>
      <main>
        <header>
          <p class="soft">${file.workspace} / ${file.environment}</p>
          <h1><bdi>${run.runId}</bdi> ${chip(run.status)}</h1>
          ${whyHtml(run, file.hasPayloads)}
          <dl>
            ${factsOf(file).map(
              ([name, value]) =>
                html`<div>
                  <dt>${name}</dt>
                  <dd><bdi>${value}</bdi></dd>
                </div>`,
            )}
          </dl>
        </header>
        ${leftOut(file, shown).map((text) => html`<p class="note">${text}</p> `)}${section('Issues', issues.map(issueHtml))}${section('Approvals', approvals.map(approvalHtml))}
        <h2>Timeline</h2>
        <ol>
     `
  return `${start.text}<style>${RUN_PAGE_STYLE}</style>\n${body.text}`
}

export function stepHtml(step: Step, payload: string | null): string {
  const { row, depth, left, width, since, latency } = step
  const data = payload === null ? {} : (JSON.parse(payload) as Record<string, unknown>)
  const kind = EVENT_TYPE_WORDS.has(row.eventType) ? row.eventType.toLowerCase() : 'other'
  const [x, length] = [Math.round(left * 1_000), Math.max(4, Math.round(width * 1_000))]
  const line = html`<time>+${(since / 1_000).toFixed(3)}</time
    ><b><bdi>${EVENT_TYPE_WORDS.get(row.eventType) ?? row.eventType}</bdi></b
    ><span class="label"><bdi>${row.label}</bdi>${factLine(row, data)}</span
    ><svg viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
      <rect x="${Math.min(x, 996)}" width="${length}" height="8" /></svg
    ><span class="took">${latency === null ? '' : duration(latency)}</span>`
  const classes = `d${depth} ${kind}${isErrorEvent(row.eventType, data) ? ' failed' : ''}`
  // 0: retention removed the payload.
  if (payload === null || row.payloadBytes <= EMPTY_BYTES)
    return html`<li class="${classes}"><div class="row">${line}</div></li> `.text
  const text = indented(payload, payload.length * INDENTED_MOST)
  return html`<li class="${classes}">
    <details>
      <summary class="row">${line}</summary>
      <pre tabindex="0">${text}</pre>
    </details>
  </li> `.text
}

const EMPTY_BYTES = 2

export function pageEnd({ run, writtenAt, hasPayloads }: RunFile): string {
  const payloads = hasPayloads ? '' : ' Payloads are not included.'
  return html`</ol>
<footer>Written by Tacho on ${timeText(isoTime(writtenAt))}. Internal id of the run: ${run.id}.${payloads}</footer>
</main>
</body>
</html>
`.text
}

/** The error of a failed run. Without payloads, the file has its class and place, but not its message. */
function whyHtml(run: OperatorRun, hasPayloads: boolean): Html {
  const why = whyEnded(
    hasPayloads || run.failure === null ? run : { ...run, failure: { ...run.failure, message: null } },
  )
  return why === null ? html`` : html`<p class="why"><span aria-hidden="true">✕ </span><bdi>${why}</bdi></p> `
}

function leftOut(
  { run, hasPayloads, issues, approvals }: RunFile,
  shown: { events: number; payloads: number },
): string[] {
  const { events, payloads } = shown
  const texts: string[] = []
  if (events < run.eventCount) {
    texts.push(`This file shows the first ${number(events)} of ${number(run.eventCount)} events.`)
  }
  if (hasPayloads && payloads < events) {
    const most = `${number(LIMITS.runFilePayloadBytes / 1_048_576)} MiB`
    texts.push(`It has the payloads of the first ${number(payloads)} events: together they have at most ${most}.`)
  }
  if (run.payloadsRemoved > 0) texts.push(`Retention removed the payloads of ${number(run.payloadsRemoved)} events.`)
  if (issues.length === LIMITS.runFileRows) texts.push(`It has the last ${LIMITS.runFileRows} issues.`)
  if (approvals.length === LIMITS.runFileRows) texts.push(`It has the first ${LIMITS.runFileRows} approvals.`)
  return texts
}

function factsOf({ run, writtenAt }: RunFile): [string, string][] {
  const { usage, agent, estimatedCost, priceTable, unpricedCalls } = run
  const { totalTokens, promptTokens, completionTokens } = usage
  const silence = stalledMs(run, writtenAt)
  const running = silence === null ? 'still running' : `stalled: no event for ${duration(silence)}`
  const took = Math.max(0, Date.parse(run.endedAt ?? run.lastEventAt) - Date.parse(run.startedAt))
  const facts: [string, string | null][] = [
    ['Agent', run.agentId === null ? agent.name : `${agent.name} (${run.agentId})`],
    ['Session', run.sessionId],
    ['Started', timeText(run.startedAt)],
    ['Ended', run.endedAt === null ? running : timeText(run.endedAt)],
    ['Duration', duration(took)],
    ['Events', number(run.eventCount)],
    ['Errors', number(run.errorCount)],
    [
      'Tokens',
      tokenWords(
        totalTokens,
        (all) => `${number(all)} (${number(promptTokens)} prompt, ${number(completionTokens)} completion)`,
      ),
    ],
    ['Cost', costWords(run, (cost) => `$${number(cost)}`)],
    ['Estimated', estimatedCost === null ? null : `$${number(estimatedCost)} of it, by ${priceTable}`],
    ['Calls without a known cost', unpricedCalls === 0 ? null : number(unpricedCalls)],
    ['Models', run.models.join(', ') || null],
    ['Tools', run.tools.join(', ') || null],
  ]
  return facts.filter((fact): fact is [string, string] => fact[1] !== null)
}

function section(title: string, items: Html[]): Html {
  return items.length === 0
    ? html``
    : html`<h2>${title}</h2>
        <ul>
          ${items}
        </ul> `
}

const TONES = new Map([
  ['COMPLETED', 'good'],
  ['APPROVED', 'good'],
  ['RESOLVED', 'good'],
  ['FAILED', 'bad'],
  ['REJECTED', 'bad'],
  ['OPEN', 'bad'],
  ['PENDING', 'warn'],
  ['EXPIRED', 'warn'],
  ['CANCELLED', 'warn'],
])

function chip(status: string): Html {
  return html`<span class="chip ${TONES.get(status) ?? ''}">${status}</span>`
}

function issueHtml({ title, state, occurrences, firstSeenAt, lastSeenAt, assignee }: IssueSummary): Html {
  const seen = `${number(occurrences)} ${occurrences === 1 ? 'time' : 'times'} from ${timeText(firstSeenAt)} to ${timeText(lastSeenAt)}`
  return html`<li>
    ${chip(state)} <bdi>${title}</bdi>
    <p class="soft">${seen}${assignee === null ? '' : `, assigned to ${assignee}`}</p>
  </li> `
}

function approvalHtml(approval: OperatorApproval): Html {
  const { status, toolName, reason, createdAt, importedAt, decidedAt, decidedBy, decisionReason, inputHash } = approval
  const by = decidedBy === null ? '' : ` by ${decidedBy.name}`
  const decided = decidedAt === null ? '' : `, decided ${timeText(decidedAt)}${by}`
  const imported = importedAt === null ? '' : `, imported ${timeText(importedAt)}`
  const reasons = [reason, decisionReason].flatMap((text) => (text === null ? [] : [html`<p><bdi>${text}</bdi></p>`]))
  return html`<li>
    ${chip(status)} <bdi>${toolName}</bdi>${reasons}
    <p class="soft">Requested ${timeText(createdAt)}${decided}${imported}. Input ${inputHash.slice(0, HASH_DIGITS)}…</p>
  </li> `
}

const HASH_DIGITS = 16

function factLine({ eventType, label }: EventRowRead, data: Record<string, unknown>): Html[] {
  const text = (name: string) =>
    typeof data[name] === 'string' ? [data[name].slice(0, FACT_CHARS).toWellFormed()] : []
  const facts: string[] = []
  const usage = usageOf(eventType, data)
  if (usage !== null) {
    facts.push(...text('model'))
    if (usage.totalTokens > 0) facts.push(`${number(usage.totalTokens)} tokens`)
    if (usage.costNanos > 0) facts.push(`cost ${number(usage.costNanos / NANOS)}`)
  }
  if (eventType === 'TOOL_CALL') facts.push(...text('toolName'))
  if (eventType === 'POLICY_DECISION') facts.push(...text('action'), ...text('toolName'))
  if (eventType === 'SESSION_OUTCOME') facts.push(...text('status'))
  const failure = failureOf({ eventType, label, payload: data })
  if (failure !== null) facts.push(failureLine(failure, null))
  return facts.filter((fact) => fact !== label && fact !== '').map((fact) => html` <small><bdi>${fact}</bdi></small>`)
}

function number(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 9 })
}

function timeText(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC`
}
