/** Every program in the other pages of docs/sdk runs unchanged against a real service. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { BlockCode } from '../src/index.ts'
import { API_KEY, ended, startServer, type TestServer } from '../../cli/test/tacho.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PAGES = ['guarding-tools', 'runtime-configuration', 'testing']

const textOf = (page: string): string => readFileSync(`${ROOT}/docs/sdk/${page}.md`, 'utf8')
const programsOf = (page: string): string[] =>
  [...textOf(page).matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code ?? '')

/** The programs find the SDK in this folder and can write files to it. */
const folder = mkdtempSync(path.join(tmpdir(), 'tacho-docs-'))
symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
after(() => rmSync(folder, { recursive: true }))

async function run(code: string[], variables: Record<string, string>) {
  const child = spawn(process.execPath, code, { cwd: folder, env: { ...process.env, ...variables } })
  return ended(child)
}

describe('documentation of the SDK', () => {
  let server: TestServer
  before(async () => {
    server = await startServer()
  })
  after(() => server.stop())
  const variables = () => ({ TACHO_URL: server.url, TACHO_API_KEY: API_KEY, NODE_TEST_CONTEXT: '' })

  for (const page of PAGES) {
    for (const [number, program] of programsOf(page).entries()) {
      test(`${page}: program ${number + 1}`, async () => {
        const { code, stderr } = await run(['--input-type=module-typescript', '--eval', program], variables())
        assert.equal(stderr, '')
        assert.equal(code, 0)
      })
    }
  }

  for (const example of ['support-agent', 'deployed-prompt']) {
    test(`examples/agents/${example}.ts`, async () => {
      const { code, stdout, stderr } = await run([path.join(ROOT, `examples/agents/${example}.ts`)], variables())
      assert.deepEqual([code, stderr], [0, ''])
      assert.match(stdout, /Your order 1007 arrives tomorrow|fallback: Greet Ada in one sentence/)
    })
  }
})

test('every code of a blocked tool is in the documentation', () => {
  const codes: Record<BlockCode, true> = {
    policy: true,
    loop_detected: true,
    budget_exceeded: true,
    approval_rejected: true,
    approval_expired: true,
    approval_timeout: true,
    approval_unavailable: true,
    aborted: true,
    input_changed: true,
    input_not_json: true,
    not_configured: true,
    guard_failed: true,
  }
  const text = textOf('guarding-tools')
  for (const code of Object.keys(codes)) assert.ok(text.includes(`\`${code}\``), code)
})
