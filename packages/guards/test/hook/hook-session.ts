/** Sessions of coding agents: each hook is a real child process, on a real Tacho. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'
import { runTacho, type Ended } from '../../../cli/test/tacho.ts'
import { startGuardedServer, type RecordedEvent } from '../guarded-server.ts'

export type Agent = 'claude-code' | 'codex'

export interface Session {
  id: string
  /** Runs the hook with this event, and returns the JSON that it printed; null: nothing. */
  hook: (
    event: string,
    fields?: object,
    more?: { args?: string[]; variables?: Record<string, string> },
  ) => Promise<Answer>
  tool: (command: string, id: string) => { tool_name: string; tool_input: object; tool_use_id: string }
}

export interface Answer extends Ended {
  answer: {
    systemMessage?: string
    hookSpecificOutput?: { hookEventName: string; permissionDecision: string; permissionDecisionReason: string }
  } | null
}

/** A Tacho with policies, and a folder for the state of hooks. */
export async function startHooks() {
  const directory = mkdtempSync(path.join(tmpdir(), 'tacho-hook-'))
  const server = await startGuardedServer()
  await server.deploy({
    'no-rm': { condition: 'tool.name == "Bash" && tool.input.command.contains("rm -rf")', action: 'BLOCK' },
    'ask-push': {
      condition: 'tool.name == "Bash" && tool.input.command.startsWith("git push")',
      action: 'REQUIRE_APPROVAL',
    },
    'three-calls': { condition: 'tool.name == "Count" && run.toolCalls >= 3', action: 'BLOCK' },
    'warn-curl': { condition: 'tool.name == "Bash" && tool.input.command.contains("curl")', action: 'WARN' },
  })
  let sessions = 0

  function session(agent: Agent = 'claude-code', state = path.join(directory, 'state')): Session {
    const id = `session-${++sessions}`
    const common = {
      session_id: id,
      transcript_path: path.join(directory, 'none.jsonl'),
      cwd: directory,
      permission_mode: 'default',
    }
    return {
      id,
      async hook(event, fields = {}, { args = [], variables = {} } = {}) {
        const record = {
          ...common,
          ...(agent === 'codex' && { model: 'gpt-5', turn_id: 'turn-1' }),
          hook_event_name: event,
          ...fields,
        }
        const own = { ...server.variables, TACHO_STATE_DIR: state, HOME: directory, ...variables }
        const done = await runTacho(['hook', agent, ...args], own, JSON.stringify(record))
        return {
          ...done,
          answer: ['', '{}\n'].includes(done.stdout) ? null : (JSON.parse(done.stdout) as Answer['answer']),
        }
      },
      tool: (command, id) => ({ tool_name: 'Bash', tool_input: { command }, tool_use_id: id }),
    }
  }

  async function close(): Promise<void> {
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  }

  return { server, directory, session, close }
}

export const brief = (events: readonly RecordedEvent[]) => events.map(({ eventType, label }) => `${eventType} ${label}`)

export const denied = ({ answer }: Answer): string => {
  assert.equal(answer?.hookSpecificOutput?.hookEventName, 'PreToolUse')
  assert.equal(answer?.hookSpecificOutput?.permissionDecision, 'deny')
  return answer?.hookSpecificOutput?.permissionDecisionReason ?? ''
}

export function connectTo(url: string): Socket {
  return connect(Number(new URL(url).port), new URL(url).hostname)
}

/** A folder outside of temporary folders, which count as inside every project. The caller removes it. */
export function permanentFolder(): string {
  const temporary = [tmpdir(), '/tmp', '/var/tmp']
    .filter((folder) => existsSync(folder))
    .map((folder) => realpathSync(folder))
  const isTemporary = (folder: string) => temporary.some((one) => `${realpathSync(folder)}/`.startsWith(`${one}/`))
  for (const folder of [import.meta.dirname, homedir(), '/var/lib', '/usr/local']) {
    try {
      if (!isTemporary(folder)) return mkdtempSync(path.join(folder, '.project-'))
    } catch {
      // The folder does not exist, or we may not write to it.
    }
  }
  throw new Error('No folder outside of the temporary ones can be written')
}
