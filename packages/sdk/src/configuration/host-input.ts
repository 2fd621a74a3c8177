import { readSafely } from '../recording/json.ts'

/** An entry of Node's list of handles, which is undocumented but in all its versions. */
interface Handle {
  fd?: number
  isPaused?: () => boolean
}

interface NodeProcess {
  /** To the process that forked this one. */
  channel?: { fd?: number }
  _getActiveHandles?: () => readonly Handle[]
}

/**
 * Whether the host reads its standard input, as a server of MCP on stdio does, or messages of the process that forked it, as a worker
 * does. Node lists both as it lists an output (idle-host.ts), but they keep the process running.
 */
export function readsInput(): boolean {
  const { process } = globalThis as { process?: NodeProcess }
  // Throws in a worker thread whose environment has the channel of the process.
  const channel = readSafely(() => process?.channel?.fd, 0) ?? 0
  const inputs = new Set<unknown>([0, channel])
  return process?._getActiveHandles?.().some((handle) => inputs.has(handle.fd) && !handle.isPaused?.()) ?? false
}
