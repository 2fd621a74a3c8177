/**
 * The tutorials, the recording guide and the examples do what the pages say, against a real service.
 * packages/sdk-integrations/test/snippets.test.ts runs every code block of every page, with the packed SDK and on each Node.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { BlockCode } from '../src/index.ts'
import { API_KEY, ended, OPERATOR_TOKEN, runCommand, startServer, type TestServer } from '../../cli/test/tacho.ts'
import { interpreter, PYTHON_SDK, withoutPython } from '../../sdk-conformance/test/python.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const textOf = (page: string): string => readFileSync(`${ROOT}/docs/${page}.md`, 'utf8')
const blocksOf = (page: string, language: string): string[] =>
  [...textOf(page).matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code]) => code ?? '')

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

  for (const example of ['support-agent', 'deployed-prompt']) {
    test(`examples/agents/${example}.ts`, async () => {
      const { code, stdout, stderr } = await run([path.join(ROOT, `examples/agents/${example}.ts`)], variables())
      assert.deepEqual([code, stderr], [0, ''])
      assert.match(stdout, /Your order 1007 arrives tomorrow|fallback: Greet Ada in one sentence/)
    })
  }

  /** Records all programs of a language as one run. */
  const inOneRun = (language: string, begin: string) => [begin, ...blocksOf('recording', language)].join('\n')

  test('recording: every payload is accepted and understood', async () => {
    const types = [...textOf('recording').matchAll(/^### .*?(?:`(\w+)`)?$/gm)].map(([, type]) => type ?? 'HANDOVER')
    const payloads = blocksOf('recording', 'json').filter((text) => !text.includes('rejectedEventIds'))
    assert.equal(types.length, payloads.length)
    const events = payloads.map((payload, index) => {
      const ids = {
        eventId: `${index}`,
        clientId: 'docs',
        runId: 'payloads',
        agentName: 'Docs',
        label: 'from the docs',
      }
      return { ...ids, eventType: types[index], timestamp: Date.now(), payload: JSON.parse(payload) as unknown }
    })
    const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
      method: 'POST',
      headers: { 'x-api-key': API_KEY, 'content-type': 'application/json' },
      body: JSON.stringify(events),
    })
    const { success, warnings } = (await reply.json()) as { success: boolean; warnings?: unknown[] }
    assert.deepEqual([success, warnings], [true, undefined])
  })

  test('recording: the command, and the calls of both SDKs', { skip: withoutPython }, async () => {
    const [command = ''] = blocksOf('recording', 'bash')
    const [answer = ''] = blocksOf('recording', 'json')
    const sent = await ended(spawn('bash', ['-c', command], { env: { ...process.env, ...variables() } }))
    assert.deepEqual(JSON.parse(sent.stdout), JSON.parse(answer))
    const typescript = inOneRun(
      'ts',
      "import { Tacho } from '@tacho/sdk'\nconst tacho = new Tacho()\nconst run = tacho.startRun({ runId: 'ts' })",
    )
    const first = await run(['--input-type=module-typescript', '--eval', typescript], variables())
    assert.deepEqual([first.code, first.stderr], [0, ''])
    const python = inOneRun('python', 'import tacho_sdk as tacho\nrun = tacho.start_run(run_id="python")')
    const env = { ...process.env, ...variables(), PYTHONPATH: path.join(PYTHON_SDK, 'src') }
    const second = await ended(spawn(interpreter, ['-c', python], { env }))
    assert.deepEqual([second.code, second.stderr], [0, ''])
    const typesOf = async (runId: string) => {
      const reply = await fetch(`${server.url}/openapi/v1/runs/${runId}`, { headers: { 'x-api-key': API_KEY } })
      const { events } = (await reply.json()) as { events: { eventType: string }[] }
      return events.map(({ eventType }) => eventType).sort()
    }
    assert.deepEqual(await typesOf('ts'), await typesOf('python'))
    // Each call on the page records one event, including the score.
    assert.equal((await typesOf('ts')).length, 8)
  })

  test(
    'the pages about alerts and exports: the request, and the check of a file',
    { skip: withoutPython },
    async () => {
      const operator = { TACHO_URL: server.url, TACHO_OPERATOR_TOKEN: OPERATOR_TOKEN }
      const { stdout } = await runCommand(['environments', 'list', '--json'], operator)
      const { items } = JSON.parse(stdout) as { items: { id: string }[] }
      const env = { ...process.env, ...operator, ENVIRONMENT: items[0]?.id }
      const [request = ''] = blocksOf('alerts', 'sh')
      const alert = await ended(spawn('bash', ['-c', request], { env }))
      assert.equal((JSON.parse(alert.stdout) as { status: string }).status, 'OK')
      const [check = ''] = blocksOf('export', 'python')
      const file = path.join(folder, 'export.jsonl')
      const exported = await runCommand(['export', '-o', file], operator)
      assert.equal(exported.code, 0, exported.stderr)
      const checked = await ended(spawn('sh', ['-c', '"$0" -c "$1" < "$2"', interpreter, check, file]))
      assert.equal(checked.stdout.trim(), 'complete', checked.stderr)
    },
  )

  test('the tutorial: a call that runs, one that is blocked, one that a person approves', async () => {
    const [program = ''] = blocksOf('tutorial', 'ts')
    const [manifest = ''] = blocksOf('tutorial', 'yaml')
    writeFileSync(path.join(folder, 'agent.ts'), program)
    writeFileSync(path.join(folder, 'tacho.yaml'), manifest)
    const operator = { TACHO_URL: server.url, TACHO_OPERATOR_TOKEN: OPERATOR_TOKEN }
    // On a slow machine, the policies may arrive late. Then the tool does not run, and the agent reports it.
    const agent = async (amount: string): Promise<string> => {
      const { stdout } = await run(['agent.ts', amount], variables())
      return stdout.startsWith('The rules for this tool are not available') ? agent(amount) : stdout
    }
    const tacho = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(args, operator)
      assert.equal(code, 0, stderr)
      return stdout
    }

    assert.match(await agent('20'), /^Refunded 20 for order 1007\.$/m)
    assert.match(await tacho('runs', 'show'), /refund/)
    const draft = /policies simulate --condition '([^']+)' --action BLOCK/.exec(textOf('tutorial'))?.[1] ?? ''
    assert.match(await tacho('policies', 'simulate', '--condition', draft, '--action', 'BLOCK'), /would block \d+ of/)
    await tacho('apply', '-f', path.join(folder, 'tacho.yaml'), '--yes')
    assert.doesNotMatch(await agent('900'), /Refunded/)
    const waiting = agent('250')
    const pending = async () => {
      const { items } = JSON.parse(await tacho('approvals', 'list', '--json')) as { items: { id: string }[] }
      return items[0]?.id
    }
    let id = await pending()
    while (id === undefined) id = await pending()
    await tacho('approvals', 'approve', id, '--reason', 'known customer')
    assert.match(await waiting, /^Refunded 250 for order 1007\.$/m)
    assert.match(await tacho('issues', 'list'), /TOOL_BLOCKED|refund/)
    // Undeploy as the tutorial says, so that the programs of other pages are not blocked.
    const cleanUp = [...textOf('tutorial').matchAll(/^tacho (policies undeploy .*)$/gm)].map(([, line = '']) => line)
    assert.equal(cleanUp.length, 2)
    for (const line of cleanUp) await tacho(...line.split(' '))
    assert.match(await agent('900'), /^Refunded 900 for order 1007\.$/m)
  })
})

describe('the tutorial of the poisoned page', () => {
  let server: TestServer
  before(async () => {
    server = await startServer()
  })
  after(() => server.stop())

  test('the account of a stranger is not paid, that of the user and our own are', async () => {
    const [program = ''] = blocksOf('poisoned-page', 'ts')
    const [manifest = ''] = blocksOf('poisoned-page', 'yaml')
    writeFileSync(path.join(folder, 'payer.ts'), program)
    writeFileSync(path.join(folder, 'payer.yaml'), manifest)
    const variables = { TACHO_URL: server.url, TACHO_API_KEY: API_KEY, NODE_TEST_CONTEXT: '' }
    const agent = async (way: string): Promise<string> => {
      const { stdout, stderr } = await run(['payer.ts', way], variables)
      assert.equal(stderr, '')
      return stdout.startsWith('The rules for this tool are not available') ? agent(way) : stdout
    }
    assert.equal(await agent('poisoned'), 'Paid 80 to GB33 BUKB 2020 1555 5555 55.\n')
    const operator = { TACHO_URL: server.url, TACHO_OPERATOR_TOKEN: OPERATOR_TOKEN }
    const applied = await runCommand(['apply', '-f', path.join(folder, 'payer.yaml'), '--yes'], operator)
    assert.equal(applied.code, 0, applied.stderr)
    assert.match(await agent('poisoned'), /The account comes neither from the user nor from our own data/)
    assert.equal(await agent('honest'), 'Paid 80 to DE02 1203 0000 0000 2020 51.\n')
    assert.equal(await agent('named'), 'Paid 80 to DE02120300000000202051.\n')
  })
})

test('every code of a blocked tool is in the documentation', () => {
  const codes: Record<BlockCode, true> = {
    policy: true,
    loop_detected: true,
    budget_exceeded: true,
    approval_rejected: true,
    approval_expired: true,
    approval_timeout: true,
    approval_pending: true,
    approval_used: true,
    approval_unavailable: true,
    aborted: true,
    caller_gone: true,
    call_cut: true,
    input_changed: true,
    input_not_json: true,
    not_configured: true,
    guard_failed: true,
  }
  const text = textOf('sdk/guarding-tools')
  for (const code of Object.keys(codes)) assert.ok(text.includes(`\`${code}\``), code)
})
