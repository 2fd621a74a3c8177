/** Each claim of docs/comparison.md about Tacho has a test that pins it, or a route that exists or does not. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const text = readFileSync(path.join(ROOT, 'docs/comparison.md'), 'utf8')
const paths = [...Object.values(ROUTES), ...Object.values(OPERATOR_ROUTES)].map((route) => route.path)

interface Evidence {
  /** Test files, and a part of the name of a test in each. */
  tests?: [file: string, name: string][]
  /** Paths of routes. */
  has?: RegExp
  lacks?: RegExp
}

const EVENTS = 'packages/server/test/http/record/events.test.ts'
const GUARD = 'packages/sdk/test/guard/guard.test.ts'
const CLAIMS: Record<string, Evidence> = {
  'Judging by a model.': {
    tests: [['packages/cli/test/tape/experiment.test.ts', 'a dataset grows from filters, judgement and files']],
    has: /\/scores/,
    lacks: /evaluat/i,
  },
  'A prompt playground.': { has: /\/prompts\/\{promptId\}\/versions/, lacks: /playground/i },
  'Routing between model providers.': {
    tests: [['packages/guards/test/wire/bytes.test.ts', '100 MB pass in both directions with the same hash']],
    lacks: /chat|completions|\/v1\/messages/i,
  },
  'Snapshots of the files': {
    tests: [['packages/cli/test/tape/tape.test.ts', 'test(']],
    lacks: /snapshot|checkpoint/i,
  },
  'OpenTelemetry by gRPC, and metrics.': {
    tests: [
      ['packages/server/test/http/record/lost-requests.test.ts', 'gRPC gets a status of gRPC that names http/protobuf'],
    ],
  },
  'Sign-in by SAML.': { has: /oidc/, lacks: /saml/i },
  'A hosted service.': {},
  'Acknowledged means stored.': {
    tests: [
      [EVENTS, 'what was acknowledged can be read at once'],
      ['packages/server/test/process/workers.test.ts', 'no acknowledged event is lost'],
    ],
  },
  'Each event has its own verdict': {
    tests: [[EVENTS, 'invalid events are rejected with a reason, the valid ones of the batch are stored']],
  },
  'Retries count once': {
    tests: [[EVENTS, 'concurrent retries of the same batch store and count each event once']],
  },
  'Approvals are bound to tool and input': {
    tests: [
      [GUARD, 'the tool runs with the approved input, even if its caller changes it during the approval'],
      ['packages/server/test/storage/suite/approvals/approvals.ts', 'from then on it is EXPIRED for good'],
      ['packages/server/test/http/messages/slack.test.ts', 'a link decides nothing'],
    ],
  },
  'A failed guard stops the tool.': {
    tests: [
      [GUARD, 'no guarded tool runs until policies were loaded once'],
      [GUARD, 'no decision in time stops the tool'],
      [GUARD, 'the tool does not run if an input that it reads elsewhere changes during the approval'],
    ],
  },
  'Issues explain themselves.': {
    tests: [['packages/server/test/domain/issues/issue.test.ts', 'facts are detection type, policy, tool, tool set']],
  },
  'Small.': { tests: [['packages/cli/test/start.test.ts', 'test(']] },
}

test('every claim has its evidence, and every evidence its claim', () => {
  const sections = /## What Tacho does not do\n(.*?)\n## Spans by/s.exec(text)?.[1] ?? ''
  const bullets = [...sections.matchAll(/^- (?:\*\*)?(.*)$/gm)].map(([, line = '']) => line.replace('**', ''))
  const claims = Object.keys(CLAIMS)
  assert.deepEqual(
    bullets.map((bullet) => claims.find((claim) => bullet.startsWith(claim)) ?? bullet),
    claims,
  )
})

for (const [claim, { tests = [], has, lacks }] of Object.entries(CLAIMS)) {
  test(`"${claim}" is so`, () => {
    for (const [file, name] of tests)
      assert.ok(readFileSync(path.join(ROOT, file), 'utf8').includes(name), `${file}: ${name}`)
    if (has)
      assert.ok(
        paths.some((route) => has.test(route)),
        String(has),
      )
    if (lacks)
      assert.deepEqual(
        paths.filter((route) => lacks.test(route)),
        [],
      )
  })
}

test('the documents that it names as evidence of numbers are there', () => {
  for (const [, file = ''] of text.matchAll(/\]\(([\w./-]+\.md)\)/g))
    assert.ok(readFileSync(path.join(ROOT, 'docs', file)))
  assert.ok(readFileSync(path.join(ROOT, 'bench/src/otlp-beside.ts')))
})
