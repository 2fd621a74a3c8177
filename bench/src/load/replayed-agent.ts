/**
 * A tape with many events, and the agent that replays it: a process that makes one guarded call after another. As a
 * child of the benchmark, this module is the replay's host.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { Tacho } from '@tacho/sdk'
import { replayCommand } from '../../../packages/cli/src/record/tape/replay-command.ts'
import { readTape, tapeText, type Tape } from '../../../packages/cli/src/record/tape/tape.ts'
import { answer } from '../child.ts'

export interface Replayed {
  /** From reading the tape's file to the verdict. */
  seconds: number
  /** Processor time of the host. */
  cpuSeconds: number
  memoryMb: number
  events: number
}

const POLICY = { policyId: 'all', name: 'all', version: '1', condition: 'true', severity: 'LOW', action: 'WARN' }
const inputOf = (call: number) => ({ call, text: `${call} ${'a question '.repeat(40)}` })

/** Each call has three events: its decision, start and end. */
export function writeLongTape(file: string, calls: number): void {
  const steps = Array.from({ length: calls }, (_, call): Tape['steps'] => {
    const [step, from, input] = [2 * call + 1, 3 * call, inputOf(call)]
    const output = `${call} ${'an answer '.repeat(40)}`
    return [
      { step, kind: 'decision', from, to: from, tool: 'look', action: 'WARN', policies: ['all'] },
      { step: step + 1, kind: 'tool', from: from + 1, to: from + 2, tool: 'look', input, outcome: 'returned', output },
    ]
  }).flat()
  steps.push({ step: 2 * calls + 1, kind: 'end', from: 3 * calls, to: 3 * calls, status: 'COMPLETED' })
  const head: Tape['head'] = {
    tape: 1,
    run: 'long',
    agent: 'Replayed',
    recordedBy: 'sdk',
    outcome: 'COMPLETED',
    checksum: '',
    replayable: true,
    prompts: [],
    policies: [POLICY],
  }
  writeFileSync(file, tapeText({ head, steps }))
}

async function replayed({ file, calls }: { file: string; calls: number }): Promise<Replayed> {
  const [begun, before] = [performance.now(), process.cpuUsage()]
  const words = [process.execPath, import.meta.filename, String(calls)]
  const options = { mode: 'strict', ignored: [], output: 'stderr', timeoutMs: 300_000 } as const
  const { departure, events } = await replayCommand(readTape(readFileSync(file)), words, options)
  if (departure) throw new Error(departure.sentence)
  const { user, system } = process.cpuUsage(before)
  return {
    seconds: (performance.now() - begun) / 1_000,
    cpuSeconds: (user + system) / 1e6,
    memoryMb: process.resourceUsage().maxRSS / 1e3,
    events: events.length,
  }
}

async function runAgent(calls: number): Promise<void> {
  const tacho = new Tacho({ agentName: 'Replayed', guard: { loop: false } })
  const look = tacho.guard((_: ReturnType<typeof inputOf>): unknown => undefined, { name: 'look' })
  await tacho.run(async () => {
    for (let call = 0; call < calls; call++) await look(inputOf(call))
  })
  await tacho.shutdown()
}

if (process.env['TACHO_REPLAY']) await runAgent(Number(process.argv[2]))
else if (process.send) answer(replayed)
