/** Checks that docs/integrations/guarded.md matches the results of both languages. UPDATE_DOCS=1 writes the page. */
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { RESULTS } from './matrix.ts'

const FILE = new URL('../../../../docs/integrations/guarded.md', import.meta.url)

/** A file in `results`, one for each integration: `typescript-ai.json`, `python-crewai.json`. */
interface Results {
  readonly language: string
  readonly integration: string
  /** Page in docs/integrations. */
  readonly page: string
  /** Versions of the framework's packages. */
  readonly tested: string
  /** Results by the names in `ways.json`. Ways that the framework does not have are omitted. */
  readonly ways: Readonly<Record<string, 'guarded' | 'refused' | { readonly cannot: string }>>
  /** Sentences about tools that the framework runs itself, so that they cannot be guarded inside the process. */
  readonly outside: readonly string[]
}

function read<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, RESULTS), 'utf8')) as T
}

function table(ways: readonly string[], all: readonly Results[]): string {
  const cell = (way: string, results: Results) => {
    const given = results.ways[way]
    if (given === undefined) return '–'
    return given === 'guarded' ? 'guarded' : given === 'refused' ? 'refused' : '**no**'
  }
  const used = ways.filter((way) => all.some((results) => results.ways[way] !== undefined))
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    row(['', ...all.map(({ integration, page }) => `[${integration}](${page})`)]),
    row(['---', ...all.map(() => '---')]),
    ...used.map((way) => row([way, ...all.map((results) => cell(way, results))])),
  ].join('\n')
}

function cannot({ integration, ways, outside, tested }: Results): string {
  const ofWays = Object.entries(ways).flatMap(([way, given]) =>
    typeof given === 'object' ? [`- ${way}: ${given.cannot}`] : [],
  )
  return [`**${integration}** (${tested})`, '', ...ofWays, ...outside.map((sentence) => `- ${sentence}`), ''].join('\n')
}

function section(language: string, ways: readonly string[], all: readonly Results[]): string {
  return `## ${language}

${table(ways, all)}

### What cannot be guarded from inside

${all.map(cannot).join('\n')}`
}

test('the page says what the tests of both languages prove', () => {
  const explained = read<Record<string, string>>('ways.json')
  const ways = Object.keys(explained)
  const files = globSync('*-*.json', { cwd: fileURLToPath(RESULTS) }).toSorted()
  const results = files.map((file) => read<Results>(path.basename(file)))
  for (const { integration, ways: given } of results) {
    assert.deepEqual(
      Object.keys(given).filter((way) => !ways.includes(way)),
      [],
      integration,
    )
  }
  const languages = [...new Set(results.map(({ language }) => language))].toSorted().toReversed()
  const page = `# What is guarded

This page shows which tools each integration guards, for developers who choose one. A guarded tool gets exactly the input that the policies judged, that the approver saw, that is hashed and that is recorded: the
validated input of the tool as plain JSON, taken immediately before its function runs. Each cell below is a test with the real
framework. The tool writes down its input, and the test compares:

- **guarded**: the tool got exactly the input that was judged, hashed, approved and recorded. A blocked call does not run. A rejected call does not
  run, and nobody is asked again. In the rows "cut" to "handed off": what [the row](#the-rows) says.
- **refused**: it cannot be guarded, so the wrapper throws. With the option \`unguarded: 'allow'\` (Python: \`unguarded="allow"\`) the wrapper lets
  the tool through, and records that it runs unguarded: a diagnostic \`unguarded_tool\` and an AGENT_STEP event with \`isGuarded: false\`.
- **no**: it cannot be guarded, and the wrapper does not see it. The list below each table says why.
- –: the framework does not have it, or the integration does not touch it.

A generator in Python is refused everywhere: its body runs piece by piece after the call has returned, so a decision about the call would
come before the work and not bound it. Let the tool return a list.

${languages
  .map((language) =>
    section(
      language,
      ways,
      results.filter((one) => one.language === language),
    ),
  )
  .join('\n')}
## A proxy before the model

[\`tacho record --guard\`](../record.md#guard) and \`tacho gateway --guard\` judge what an answer of a model asks for, before the program
gets it. This is weaker than a guard at the function, and it needs no code:

- **It judges what the model asked, not what the function gets.** If the program changes, coerces or defaults the arguments, the tool runs with input that no policy has judged.
- **It guards** function and custom tool calls in chat completions, responses, Anthropic messages and Gemini, whole and streamed. A call whose arguments
  are cut or unreadable is refused.
- **It cannot guard** calls that the program makes without a model, the older \`function_call\` of chat completions, tools that the provider runs, \`local_shell\`, \`shell\`, \`apply_patch\` and computer calls of
  the Responses API, tool calls that a program reads out of plain text, WebSockets, Ollama's own chat, other protocols, and clients that are not redirected.
- **A refusal ends a call, not the wish.** The model's answer has a text in place of the call, and the program goes on without a result. With
  \`previous_response_id\` the provider still waits for the result, and refuses the next request.
- **Nothing is claimed.** An approval lets one answer pass; the proxy does not see whether the tool ran, unless a later request has its result.

## The rows

| Row | Meaning |
| --- | --- |
${ways.map((way) => `| ${way} | ${explained[way]} |`).join('\n')}

The tests write this page: \`UPDATE_DOCS=1 npm test -- sdk-integrations/test/matrix\`.
`
  if (process.env['UPDATE_DOCS']) writeFileSync(FILE, page)
  assert.ok(
    readFileSync(FILE, 'utf8') === page,
    'docs/integrations/guarded.md is stale: run UPDATE_DOCS=1 npm test -- sdk-integrations/test/matrix',
  )
})
