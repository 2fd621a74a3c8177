/** Records a run of each Python framework as a tape and replays the same agent from it. Both languages use one tape cursor. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ReplayHost } from '../../cli/src/record/tape/host.ts'
import { recordedSteps } from '../../cli/src/record/tape/recorded-steps.ts'
import { madeTape, readBack } from '../../cli/test/tape/made-tape.ts'
import {
  crewaiInterpreter,
  interpreter,
  PYTHON_SDK,
  withoutCrewai,
  withoutPython,
} from '../../sdk-conformance/test/python.ts'
import { inTurn, startModelServer } from '../src/model-server.ts'
import { DONE, FOURTH, THREE_REFUNDS } from './scene.ts'
import { assertAtFirstAnswer, withOtherInput, withOtherOrder } from './twisted-tape.ts'

const AGENTS = fileURLToPath(new URL('replay_agents.py', import.meta.url))
const FORKED = fileURLToPath(new URL('forked.py', import.meta.url))
/** Modules that the agents of each framework load, with the SDK, which creates no client and reads no variable on import. */
const FRAMEWORKS = {
  openai: ['openai', 'tacho_sdk.integrations.openai'],
  openai_responses: ['openai', 'tacho_sdk.integrations.openai'],
  anthropic: ['anthropic', 'tacho_sdk.integrations.anthropic'],
  langgraph: ['langchain_openai', 'langgraph.prebuilt', 'tacho_sdk.integrations.langchain'],
  pydantic_ai: ['pydantic_ai', 'pydantic_ai.models.openai', 'tacho_sdk.integrations.pydantic_ai'],
  openai_agents: ['agents', 'tacho_sdk.integrations.openai_agents'],
  // Without CrewAI, whose import starts threads: a fork would not have them.
  crewai: ['tacho_sdk'],
}
/** Turns off CrewAI's telemetry and its question about tracing. */
const QUIET = { CREWAI_DISABLE_TELEMETRY: 'true', CREWAI_TRACING_ENABLED: 'false', OTEL_SDK_DISABLED: 'true' }
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

interface AgentRun {
  prompt: string
  /** A file that the tool writes. */
  proof: string
  variables: Record<string, string>
}

/** Processes that have loaded a framework, by the framework's modules. */
const loaded = new Map<string, ReturnType<typeof startAgents>>()

function agentsOf(framework: string, modules: readonly string[]) {
  const known = loaded.get(modules.join())
  const agents = known ?? startAgents(framework === 'crewai' ? crewaiInterpreter : interpreter, modules)
  loaded.set(modules.join(), agents)
  return agents
}

/** Whether no later test needs the process of these modules. */
function isLast(framework: string, modules: readonly string[]): boolean {
  const [last] = Object.entries(FRAMEWORKS).findLast(([, others]) => others.join() === modules.join()) ?? []
  return last === framework
}

/** Starts a process that loads the modules, and runs each agent in a fork of it. */
function startAgents(command: string, modules: readonly string[]) {
  const keys = { OPENAI_API_KEY: 'key', ANTHROPIC_API_KEY: 'key', PYTHONPATH: path.join(PYTHON_SDK, 'src') }
  const env = { ...process.env, ...keys, ...QUIET }
  const child = spawn(command, [FORKED, AGENTS, ...modules], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'close')
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let begun = 0
  return {
    /** Runs agents at the same time. `folder` gets their standard error. */
    async run(framework: string, folder: string, runs: readonly AgentRun[]) {
      const asked = runs.map(({ prompt, proof, variables }) => ({
        arguments: [framework, prompt, proof],
        variables: { ...env, ...variables },
        stderr: path.join(folder, `stderr-${++begun}`),
      }))
      child.stdin.write(`${JSON.stringify(asked)}\n`)
      const { value } = await answers.next()
      const codes = JSON.parse(value ?? '[]') as number[]
      return asked.map(({ stderr }, at) => ({ code: codes[at], stderr: readFileSync(stderr, 'utf8') }))
    },
    async end() {
      child.stdin.end()
      await exited
    },
  }
}

for (const [framework, modules] of Object.entries(FRAMEWORKS)) {
  test(
    `${framework}: an unchanged agent differs nowhere; another prompt, order and input at their step`,
    { skip: framework === 'crewai' ? withoutCrewai : withoutPython },
    async (t) => {
      const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-replay-'))
      const model = await startModelServer(inTurn(THREE_REFUNDS, FOURTH, DONE))
      // A replay host with an empty tape serves as a service in memory.
      const service = new ReplayHost(madeTape([], HEAD), { mode: 'tools', ignored: [] })
      const agents = agentsOf(framework, modules)
      t.after(async () => {
        if (isLast(framework, modules)) await agents.end()
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
      const recording = { prompt: 'Refund all', proof: path.join(folder, 'recorded'), variables: place }
      const [recorded] = await agents.run(framework, folder, [recording])
      assert.equal(recorded?.code, 0, recorded?.stderr ?? '')
      const { steps, obstacles } = recordedSteps(service.result().events)
      assert.deepEqual([obstacles, existsSync(path.join(folder, 'recorded'))], [[], true])
      const tape = readBack(madeTape(steps, HEAD))
      const proof = path.join(folder, 'replayed')
      const scenes = [
        { prompt: 'Refund all', played: tape },
        { prompt: 'Refund none', played: tape },
        { prompt: 'Refund all', played: withOtherInput(tape) },
        { prompt: 'Refund all', played: withOtherOrder(tape) },
      ]
      const hosts = scenes.map(({ played }) => new ReplayHost(played, { mode: 'strict', ignored: [] }))
      const runs = scenes.map(async ({ prompt }, at) => {
        const origin = (await hosts[at]?.start()) ?? ''
        const variables = {
          TACHO_REPLAY: origin,
          TACHO_API_KEY: 'key',
          OPENAI_BASE_URL: `${origin}/openai/v1`,
          ANTHROPIC_BASE_URL: `${origin}/anthropic`,
        }
        return { prompt, proof, variables }
      })
      const ends = await agents.run(framework, folder, await Promise.all(runs))
      await Promise.all(hosts.map((host) => host.close()))
      assert.equal(existsSync(proof), false, 'no tool ran')
      const [same, changed, input, order] = hosts.map((host) => host.result())
      assert.ok(same && changed && input && order)
      assert.equal(same.departure?.sentence, undefined, ends[0]?.stderr ?? '')
      assert.ok(same.steps.length > 5)
      assert.equal(changed.departure?.step, tape.steps.find(({ kind }) => kind === 'model')?.step)
      assert.match(String(changed.departure?.sentence), /now it is "[^"]*Refund none/)
      assertAtFirstAnswer(tape, input.departure, /input\.order: the tape has [39], now it is 1/)
      assertAtFirstAnswer(tape, order.departure, /the agent asks refund \{"order":1\}/)
    },
  )
}
