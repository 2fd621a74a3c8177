/** Tries the installed hooks as an agent runs them, with a tool that does not exist. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { text as readText } from 'node:stream/consumers'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import path from 'node:path'
import { AGENT_NAMES, AGENTS, type AgentName } from '@tacho/guards/hook/agents.ts'
import { isCommandOf } from '@tacho/guards/hook/command.ts'
import { isManagedAgent, managedFile, managedSettings } from '@tacho/guards/hook/managed.ts'
import { isModuleAgent, moduleCommands } from '@tacho/guards/hook/modules.ts'
import { offIn, type Off } from '@tacho/guards/hook/off.ts'
import { ownCommands, readSettings, settingsFile } from '@tacho/guards/hook/settings.ts'
import { stateRoot } from '@tacho/guards/state.ts'
import { ROOT } from '@tacho/server/program/program.ts'
import { printable, printLine } from '../engine/output.ts'

export const PLACES = ['managed', 'user', 'project'] as const
type Place = (typeof PLACES)[number]

/** Longest wait for a test call: more is needed only if a policy requires a person even for this tool. */
const TRY_MS = 20_000

/** Settings that can still disable hooks of this kind. */
const STILL: Record<AgentName, Partial<Record<Place, string>>> = {
  'claude-code': {
    managed: 'A flag of the command line (--bare) still switches them off.',
    user: 'A repository can switch them off: install with --managed.',
    project: 'Anybody who changes the repository can switch them off: install with --managed.',
  },
  codex: {
    managed:
      'Input for a shell that is open already (write_stdin) calls no hook: forbid interactive shells by a policy.',
    user: 'A repository can switch them off: install with --managed.',
    project: 'The repository can switch them off: install with --managed.',
  },
  'gemini-cli': {
    managed: '',
    user: 'A repository that you trust can switch them off (hooksConfig): install with --managed.',
    project:
      'They run only in a folder that you trust, and the repository can switch them off: install with --managed.',
  },
  copilot: {
    user: 'A repository that you trust can switch them off (disableAllHooks).',
    project: 'They run only in a folder that you trust, and the repository can switch them off.',
  },
  'qwen-code': {
    managed: '',
    user: 'A repository can switch them off (disableAllHooks): install with --managed.',
    project:
      'They run only in a folder that you trust, and the repository can switch them off: install with --managed.',
  },
  cursor: {
    managed: '',
    user: '',
    project: 'They run only in a folder that you trust, and the repository can change them: install with --managed.',
  },
  opencode: {
    user: 'Plugins of a repository run in the same process and can switch this one off; so does the flag --pure.',
    project: 'The repository can delete it; the flag --pure switches it off.',
  },
  pi: {
    user: 'Extensions of a repository run in the same process; the flag --no-extensions switches it off.',
    project: 'The repository can delete it; the flag --no-extensions switches it off.',
  },
}

export async function check(agent: AgentName | undefined): Promise<void> {
  let isGood = true
  const without: AgentName[] = []
  for (const each of agent === undefined ? AGENT_NAMES : [agent]) {
    const installed = PLACES.map((place) => ({ place, ...commandsIn(each, place) })).filter(
      ({ fault, commands }) => fault !== undefined || commands.length > 0,
    )
    if (installed.length === 0) without.push(each)
    for (const { place, file, commands, fault } of installed) {
      const results =
        fault === undefined ? await Promise.all(commands.map((command) => tryOut(each, place, command))) : [fault]
      const off = place === 'managed' ? null : (offIn(each) ?? (each === 'codex' ? await codexTrust(file) : null))
      for (const result of results) {
        isGood &&= result.startsWith('decides') && !off?.isOff
        printLine(`${each}, ${place} (${file}): ${printable(result)}`)
      }
      if (off) printLine(`  ${printable(off.what)}`)
      const still = STILL[each][place]
      if (still) printLine(`  ${still}`)
    }
  }
  if (agent !== undefined && without.length > 0) {
    printLine(`${agent}: no hooks. Its tools run unchecked: tacho hook install ${agent}`)
    isGood = false
  } else if (without.length > 0) {
    // Most people use only one or two agents.
    printLine(
      `No hooks, so tools run unchecked in: ${without.join(', ')}. For one that you use: tacho hook install <agent>`,
    )
    isGood &&= without.length < AGENT_NAMES.length
  }
  if (!isGood) process.exitCode = 1
}

export function commandsIn(agent: AgentName, place: Place): { file: string; commands: string[]; fault?: string } {
  if (place === 'managed' && !isManagedAgent(agent)) return { file: '', commands: [] }
  const file = place === 'managed' ? managedFile(agent) : settingsFile({ agent, project: place === 'project' })
  try {
    if (!existsSync(file)) return { file, commands: [] }
    if (isModuleAgent(agent)) return { file, commands: moduleCommands(readFileSync(file, 'utf8')) }
    const settings = place === 'managed' ? managedSettings(agent, readFileSync(file, 'utf8')) : readSettings(file)
    return { file, commands: ownCommands(settings, agent) }
  } catch (error) {
    return { file, commands: [], fault: `unknown: ${(error as Error).message}` }
  }
}

function isOfThisMachine(agent: AgentName, command: string): boolean {
  const parts = { agent, program: PROGRAM, stateFolder: stateRoot() }
  const steps = Object.entries(AGENTS[agent].events).filter(([, ours]) => ours === 'PreToolUse')
  return steps.some(([step]) => isCommandOf(parts, step, command))
}

async function tryOut(agent: AgentName, place: Place, command: string): Promise<string> {
  // Do not run it: the author of a repository must not choose a program for this command.
  if (place === 'project' && !isOfThisMachine(agent, command))
    return 'not tried: it is not the command that this tacho installs. Install again'
  if (!command.startsWith('/usr/bin/env -i '))
    return 'written by an older version, and runs tools if it fails: install again'
  const id = `check-${randomUUID()}`
  const named = { tool_name: 'TachoCheck', tool_input: {}, tool_use_id: 'check' }
  const inOthers = Object.fromEntries(
    Object.entries(AGENTS[agent].fields).map(([theirs, ours]) => [theirs, { session_id: id, ...named }[ours]]),
  )
  const record = { session_id: id, hook_event_name: 'PreToolUse', ...named, ...inOthers }
  const startedAt = performance.now()
  const child = spawn('/bin/sh', ['-c', command], { timeout: TRY_MS })
  child.stdin.on('error', () => undefined)
  child.stdin.end(JSON.stringify(record))
  const [stdout, stderr] = await Promise.all([readText(child.stdout), readText(child.stderr), once(child, 'close')])
  const ms = Math.round(performance.now() - startedAt)
  if (child.signalCode) return `no decision within ${TRY_MS / 1_000} seconds`
  if (child.exitCode !== 0) return `refuses every tool: ${stderr.trim()}`
  const reason = /"(?:permissionDecisionReason|reason|agent_message|refused)":"((?:[^"\\]|\\.)*)"/.exec(stdout)?.[1]
  return reason === undefined || reason.includes('A policy forbids')
    ? `decides, in ${ms} ms`
    : `denies a tool that does nothing: ${reason}`
}

/** Asks Codex whether it trusts our hooks, because it runs only trusted ones. */

const ANSWER_MS = 20_000

interface Reply {
  id?: number
  result?: { data?: { hooks?: { command?: string; sourcePath?: string; trustStatus?: string }[] }[] }
}

/** @param file contains the settings with our hooks. */
async function codexTrust(file: string): Promise<Off> {
  const hooks = await listHooks()
  if (!hooks) return { isOff: false, what: 'Codex runs them only if you trusted them: start codex and enter /hooks.' }
  const ours = hooks.filter(({ sourcePath, command }) => sourcePath === file && command?.includes('/tacho hook codex'))
  const open = ours.filter(({ trustStatus }) => trustStatus !== 'trusted' && trustStatus !== 'managed')
  return open.length === 0 && ours.length > 0
    ? { isOff: false, what: 'Codex trusts them.' }
    : {
        isOff: true,
        what: 'Codex does not run them, because you did not trust them yet: start codex and enter /hooks.',
      }
}

/** The hooks that Codex lists; null if Codex is not on the PATH or does not answer. */
async function listHooks() {
  const child = spawn('codex', ['app-server'], { stdio: ['pipe', 'pipe', 'ignore'], timeout: ANSWER_MS })
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  const say = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`)
  say({ id: 1, method: 'initialize', params: { clientInfo: { name: 'tacho', version: '0' } } })
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { id, result } = JSON.parse(line) as Reply
      if (id === 1) {
        say({ method: 'initialized' })
        say({ id: 2, method: 'hooks/list', params: { cwds: [process.cwd()] } })
      }
      if (id === 2) return result?.data?.flatMap(({ hooks = [] }) => hooks) ?? null
    }
  } catch {
    // The output is not JSON.
  } finally {
    child.kill()
  }
  return null
}

/** The program in installed hooks. It starts a hook without loading the whole command: see bin/tacho. */
export const PROGRAM = path.join(ROOT, 'packages/cli/bin/tacho')
