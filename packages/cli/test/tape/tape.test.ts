/** `tacho tape` and `tacho replay` with a real server, a scripted model and an agent of its own process. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inTurn, startModelServer } from '../../../sdk-integrations/src/model-server.ts'
import { API_KEY, ended, startServer, startTacho, type TestServer } from '../tacho.ts'

const AGENT = fileURLToPath(new URL('refund-agent.ts', import.meta.url))
const PROMPT = 'Refund order 1.'

let server: TestServer
let folder: string
let tape: string
before(async () => {
  server = await startServer()
  folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-tape-'))
  await recordRun()
  const runs = JSON.parse(await server.text('runs', 'list', '--json')) as { items: { runId: string }[] }
  tape = path.join(folder, 'tapes', 'refund.jsonl')
  const said = await server.text('tape', String(runs.items[0]?.runId), '-o', tape)
  assert.match(said, /with 7 steps written/)
})
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

/** A policy needs a person for refunds, who approves. */
async function recordRun(): Promise<void> {
  const model = await startModelServer(
    inTurn(
      { toolCalls: [{ name: 'get_order', input: { order: 1 } }] },
      { toolCalls: [{ name: 'refund', input: { order: 1, amount: 30 } }] },
      { text: 'Refunded.' },
    ),
  )
  const env = { ...process.env, TACHO_URL: server.url, TACHO_API_KEY: API_KEY, OPENAI_BASE_URL: `${model.url}/v1` }
  const { code, stderr } = await ended(spawn(process.execPath, [AGENT, PROMPT], { env, stdio: 'pipe' }))
  assert.equal(code, 0, stderr)
  await model.close()
}

async function replay(args: readonly string[], agent: readonly string[]) {
  const result = await ended(startTacho(['replay', tape, ...args, '--json', '--', process.execPath, AGENT, ...agent]))
  assert.ok(result.stdout.startsWith('{'), result.stderr)
  const report = JSON.parse(result.stdout) as { verdict: string; departure: { step: number; sentence: string } | null }
  return { ...result, ...report }
}

const IGNORE = ['--ignore', 'tool.input.requestId']

test('an unchanged agent differs nowhere, and no tool runs', async () => {
  const proof = path.join(folder, 'unchanged')
  const { verdict, code, departure } = await replay(IGNORE, [PROMPT, '', proof])
  assert.deepEqual([verdict, code, departure], ['same', 0, null])
  assert.equal(existsSync(proof), false)
})

test('the first difference stops a strict replay: at its step, with the difference', async () => {
  for (const [twist, step, expected] of [
    ['prompt', 2, /step 2: the tape has a call of a model.*messages\.0\.text: the tape has "Be brief\."/s],
    [
      'amount',
      5,
      /step 5: the tape has refund \{"order":1,"amount":30\}, the agent asks refund \{"order":1,"amount":31\}/,
    ],
  ] as [string, number, RegExp][]) {
    const { verdict, code, departure } = await replay(IGNORE, [PROMPT, twist])
    assert.deepEqual([verdict, code, departure?.step], ['another way', 3, step], String(departure?.sentence))
    assert.match(String(departure?.sentence), expected)
  }
  const { departure } = await replay([], [PROMPT])
  assert.match(String(departure?.sentence), /step 3: .*input\.requestId/s)
})

test('the file has a head, and one line for each step in the order of the run', () => {
  const lines = readFileSync(tape, 'utf8').trimEnd().split('\n')
  const [head, ...steps] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.partialDeepStrictEqual(head, {
    tape: 1,
    agent: 'Refunds',
    recordedBy: 'sdk',
    outcome: 'COMPLETED',
    replayable: true,
  })
  assert.deepEqual(
    steps.map(({ kind }) => kind),
    ['input', 'model', 'tool', 'model', 'tool', 'model', 'end'],
  )
})
