/** The rows about the life of a call, for programs that guard without an SDK. packages/guards/test has their tests. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { keepResults, type Cannot } from './matrix.ts'

interface Program {
  readonly id: string
  readonly name: string
  readonly page: string
  readonly tested: string
  /** Why a way cannot be guarded, or the test that proves that it is: a file of packages/guards/test and the test's title. */
  readonly ways: Readonly<Record<string, Cannot | readonly [file: string, title: string]>>
}

const PROGRAMS: readonly Program[] = [
  {
    id: 'programs-hooks',
    name: 'Hooks of coding agents',
    page: '../coding-agents.md',
    tested: 'by their hooks',
    ways: {
      cut: {
        cannot:
          'the agent calls its hook only for calls that it could read, and hooks do not see how the answer ended.',
      },
      'never reached the tool': {
        cannot: 'the agent refuses unknown tools and invalid arguments before it asks its hook.',
      },
      'gave up': ['hook/call-life.test.ts', 'the agent stops a hook that waits for a person by'],
      forked: ['hook/decisions.test.ts', 'policies that were confirmed a moment ago decide without the service'],
      'handed off': [
        'hook/call-life.test.ts',
        'two sub-agents of one kind at once, and one below another, are joined with their calls',
      ],
    },
  },
  {
    id: 'programs-mcp-guard',
    name: 'MCP guard',
    page: '../mcp-guard.md',
    tested: 'protocols to 2026-07-28',
    ways: {
      cut: {
        cannot: "the client sends only calls that it could read, and MCP does not report how the model's answer ended.",
      },
      'never reached the tool': [
        'mcp/ends.test.ts',
        'a call that the server does not know, or whose arguments do not fit, never ran',
      ],
      'gave up': [
        'mcp/ends.test.ts',
        'a held call whose client cancels or leaves is withdrawn, and an approval of it starts nothing',
      ],
      'handed off': { cannot: 'MCP does not say which agent of the client calls.' },
    },
  },
]

for (const { id, name, page, tested, ways } of PROGRAMS) {
  test(`${name}: its results are those that the documentation prints`, () => {
    const results = Object.entries(ways).map(([way, given]) => {
      if ('cannot' in given) return [way, given]
      const [file, title] = given
      const source = readFileSync(new URL(`../../../guards/test/${file}`, import.meta.url), 'utf8')
      assert.ok(
        source.includes(`test('${title}`) || source.includes(`test(\`${title}`),
        `${file} has no test "${title}"`,
      )
      return [way, 'guarded']
    })
    keepResults(id, {
      language: 'Programs',
      integration: name,
      page,
      tested,
      ways: Object.fromEntries(results),
      outside: [],
    })
  })
}
