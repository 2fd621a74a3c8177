/** The time that a coding agent waits for its hook before a tool. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { readManifest } from '@tacho/cli/policies/apply/read-manifest.ts'
import type { Benchmark } from '../benchmark.ts'
import { ROOT } from '../place.ts'
import { below, ratioAtLeast, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { startServer, type Server } from '../server.ts'
import { spreadOf } from '../stats.ts'

/** Hooks in one round: a single one varies too much. */
const HOOKS = 10

export const hook: Benchmark = {
  name: 'hook',
  title: 'The hook of a coding agent',
  part: 'process',
  about: [
    'A whole process of `tacho hook claude-code` before a shell command that no policy matches: it starts, decides, and ends. The median of \
ten in a row. The environment has the policies to start with (`examples/policies/coding-agents.yaml`), which the service confirmed within 30 seconds.',
    'The bare limit is the same Node running an empty program, started by the same script. The budget is a ratio, because hooks slow \
down with the machine: 60 ms where Node alone takes 25 ms.',
  ],
  run: async (setting) => {
    const { plan, place } = setting
    await using server = await startServer(path.join(place, 'store'))
    await deployStarters(server)
    const access = { TACHO_URL: server.url, TACHO_API_KEY: server.headers['x-api-key'] }
    const env = { ...process.env, ...access, TACHO_STATE_DIR: path.join(place, 'state') }
    const record = {
      session_id: 'bench',
      hook_event_name: 'PreToolUse',
      tool_name: 'Bash',
      tool_input: { command: 'ls' },
    }
    const hooksOfRound = plan.size === 'quick' ? 2 : HOOKS
    const runSome = (command: string, args: readonly string[]) => {
      const times = Array.from({ length: hooksOfRound }, (_, index) => {
        const input = JSON.stringify({ ...record, tool_use_id: `call-${index}` })
        const start = performance.now()
        const { status, stdout } = spawnSync(path.join(ROOT, command), args, { env, input })
        if (status !== 0 || !['', '{}\n'].includes(stdout.toString()))
          throw new Error(`${command} ended with ${status}: ${stdout.toString()}`)
        return performance.now() - start
      })
      return { median: spreadOf(times).median }
    }
    // The first round fills the caches of the file system and of compiled code.
    const { hooks, bare } = await inTurn(
      setting,
      {
        hooks: () => runSome('packages/cli/bin/tacho', ['hook', 'claude-code']),
        bare: () => runSome('scripts/node', ['--eval', '0']),
      },
      { warmUp: true },
    )
    return { rows: [row('before a tool', 'ms', hooks.median, bare.median, below(60), ratioAtLeast(0.4))], notes: [] }
  },
}

async function deployStarters(server: Server): Promise<void> {
  const { workspaceId, environmentId } = await server.home()
  const read = readManifest(readFileSync(path.join(ROOT, 'examples/policies/coding-agents.yaml'), 'utf8'), () => {
    throw new Error('the policies to start with need no other file')
  })
  if (!read.ok) throw new Error(read.faults.map(({ message }) => message).join(' '))
  const items = []
  for (const [policyId, { name, description, condition, severity, action }] of read.manifest.policies) {
    const policy = { policyId, name, description, condition, severity, action }
    await server.operator(`/workspaces/${workspaceId}/policies`, policy)
    items.push({ kind: 'policy', id: policyId, version: '1' })
  }
  await server.operator(`/environments/${environmentId}/deployments`, { items })
}
