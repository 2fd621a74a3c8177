/** Asks Codex itself whether it trusts our hooks: it runs no other. */
import type { Off } from '@tacho/guards/hook/off.ts'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const ANSWER_MS = 20_000

interface Reply {
  id?: number
  result?: { data?: { hooks?: { command?: string; sourcePath?: string; trustStatus?: string }[] }[] }
}

/** @param file the settings with our hooks. */
export async function codexTrust(file: string): Promise<Off> {
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

/** Null if there is no Codex on the PATH, or it does not answer. */
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
    // An answer that is no JSON.
  } finally {
    child.kill()
  }
  return null
}
