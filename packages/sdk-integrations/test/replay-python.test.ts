/** The frameworks of Python: a run as a tape, and the same agent replayed from it. The tape's cursor is the same for both languages. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ReplayHost } from '../../cli/src/record/tape/host.ts'
import { recordedSteps } from '../../cli/src/record/tape/recorded-steps.ts'
import { madeTape, readBack } from '../../cli/test/tape/made-tape.ts'
import { interpreter, PYTHON_SDK, withoutPython } from '../../sdk-conformance/test/python.ts'
import { inTurn, startModelServer } from '../src/model-server.ts'
import { DONE, FOURTH, THREE_REFUNDS } from './scene.ts'
import { assertAtFirstAnswer, withOtherInput, withOtherOrder } from './twisted-tape.ts'

const AGENTS = fileURLToPath(new URL('replay_agents.py', import.meta.url))
const HEAD = {
  agent: 'Refunds',
  policies: [
    {
      policyId: 'no-second',
      name: 'No second',
      version: '1',
      condition: 'tool.name == "refund" && tool.input.order == 2.0',
      severity: 'HIGH',
      action: 'BLOCK',
    },
  ],
}

async function run(framework: string, prompt: string, proof: string, variables: Record<string, string>) {
  const env = {
    ...process.env,
    OPENAI_API_KEY: 'key',
    ANTHROPIC_API_KEY: 'key',
    PYTHONPATH: path.join(PYTHON_SDK, 'src'),
    ...variables,
  }
  const child = spawn(interpreter, [AGENTS, framework, prompt, proof], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise((resolve) => child.once('close', resolve))
  return { stderr: await readText(child.stderr), code: await ended }
}

for (const framework of ['openai', 'openai_responses', 'anthropic', 'langgraph', 'pydantic_ai', 'openai_agents']) {
  test(
    `${framework}: an unchanged agent differs nowhere; another prompt, order and input at their step`,
    { skip: withoutPython },
    async (t) => {
      const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-replay-'))
      const model = await startModelServer(inTurn(THREE_REFUNDS, FOURTH, DONE))
      // A host with an empty tape is a service in memory.
      const service = new ReplayHost(madeTape([], HEAD), { mode: 'tools', ignored: [] })
      t.after(async () => {
        rmSync(folder, { recursive: true })
        await model.close()
        await service.close()
      })
      const place = {
        TACHO_URL: await service.start(),
        TACHO_API_KEY: 'key',
        OPENAI_BASE_URL: `${model.url}/v1`,
        ANTHROPIC_BASE_URL: model.url,
      }
      const { code, stderr } = await run(framework, 'Refund all', path.join(folder, 'recorded'), place)
      assert.equal(code, 0, stderr)
      const { steps, obstacles } = recordedSteps(service.result().events)
      assert.deepEqual([obstacles, existsSync(path.join(folder, 'recorded'))], [[], true])
      const tape = readBack(madeTape(steps, HEAD))
      const replay = async (prompt: string, played = tape) => {
        const host = new ReplayHost(played, { mode: 'strict', ignored: [] })
        const origin = await host.start()
        const proof = path.join(folder, 'replayed')
        const variables = {
          TACHO_REPLAY: origin,
          TACHO_API_KEY: 'key',
          OPENAI_BASE_URL: `${origin}/openai/v1`,
          ANTHROPIC_BASE_URL: `${origin}/anthropic`,
        }
        const said = await run(framework, prompt, proof, variables)
        await host.close()
        assert.equal(existsSync(proof), false, 'no tool ran')
        return { ...host.result(), said }
      }
      // Frameworks take seconds to load.
      const [same, changed, input, order] = await Promise.all([
        replay('Refund all'),
        replay('Refund none'),
        replay('Refund all', withOtherInput(tape)),
        replay('Refund all', withOtherOrder(tape)),
      ])
      assert.equal(same.departure?.sentence, undefined, same.said.stderr)
      assert.ok(same.steps.length > 5)
      assert.equal(changed.departure?.step, tape.steps.find(({ kind }) => kind === 'model')?.step)
      assert.match(String(changed.departure?.sentence), /now it is "Refund none"/)
      assertAtFirstAnswer(tape, input.departure, /input\.order: the tape has [39], now it is 1/)
      assertAtFirstAnswer(tape, order.departure, /the agent asks refund \{"order":1\}/)
    },
  )
}
