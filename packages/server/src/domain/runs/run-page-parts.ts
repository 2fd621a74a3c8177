/** The console's colours. The page has no other style, and no style attributes. */
export const RUN_PAGE_STYLE = `
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

/** A class, so that client data can never look like HTML. */
export class Html {
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

/** Controls and direction marks become visible: they could show another order than is stored. */
function escaped(text: string): string {
  return text.replace(
    UNSAFE,
    (character) => ENTITIES.get(character) ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
