/** The time that a coding agent waits for its hook before a tool. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import type { Benchmark } from '../benchmark.ts'
import { ROOT } from '../place.ts'
import { row } from '../result.ts'
import { startServer } from '../server.ts'
import { whole } from '../text.ts'

/** Hooks in one round: one alone depends on chance. */
const HOOKS = 10

export const hook: Benchmark = {
  name: 'hook',
  title: 'The hook of a coding agent',
  part: 'process',
  about: [
    'A whole process of `tacho hook claude-code` before a tool that no policy matches: it starts, confirms the policies with the server, decides, \
and ends. The median of ten in a row.',
    'The bare limit is the same Node running an empty program, started by the same script.',
  ],
  run: async ({ plan, place, say }) => {
    await using server = await startServer(path.join(place, 'store'))
    const state = path.join(place, 'state')
    const env = { ...process.env, TACHO_URL: server.url, TACHO_API_KEY: server.apiKey, TACHO_STATE_DIR: state }
    const record = {
      session_id: 'bench',
      hook_event_name: 'PreToolUse',
      tool_name: 'Bash',
      tool_input: { command: 'ls' },
    }
    const hooksOfRound = plan.size === 'quick' ? 2 : HOOKS
    const median = (command: string, args: readonly string[]): number => {
      const times = Array.from({ length: hooksOfRound }, (_, index) => {
        const input = JSON.stringify({ ...record, tool_use_id: `call-${index}` })
        const start = performance.now()
        const { status, stdout } = spawnSync(command, args, { env, input })
        if (status !== 0 || stdout.length > 0) throw new Error(`${command} ended with ${status}: ${stdout.toString()}`)
        return performance.now() - start
      })
      return times.sort((a, b) => a - b)[hooksOfRound / 2] ?? Number.NaN
    }

    const [hooks, bare]: [number[], number[]] = [[], []]
    for (let round = 0; round <= plan.rounds; round++) {
      const ours = median(path.join(ROOT, 'packages/cli/bin/tacho'), ['hook', 'claude-code'])
      const empty = median(path.join(ROOT, 'scripts/node'), ['--eval', '0'])
      // The first round fills the caches of the file system and of compiled code.
      if (round === 0) continue
      hooks.push(ours)
      bare.push(empty)
      say(`round ${round}: ${whole(ours)} ms, bare ${whole(empty)} ms`)
    }
    const budgets = [{ of: 'ours', is: 'below', limit: 150 }] as const
    return {
      rows: [row({ what: 'before a tool', unit: 'ms', ours: hooks, bare, better: 'less', budgets: [...budgets] })],
      notes: [],
    }
  },
}
