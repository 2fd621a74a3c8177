import { readSafely } from '../recording/json.ts'

/** An entry of Node's list of active handles. The list is undocumented, but all versions have it. */
interface Handle {
  fd?: number
  isPaused?: () => boolean
}

interface NodeProcess {
  /** The channel to the parent process, if this process was forked. */
  channel?: { fd?: number }
  _getActiveHandles?: () => readonly Handle[]
}

/**
 * Whether the host reads its standard input (an MCP server on stdio) or messages of its parent process (a worker). Node
 * lists both like an output (idle-host.ts), but they keep the process running.
 */
export function readsInput(): boolean {
  const { process } = globalThis as { process?: NodeProcess }
  // Throws in a worker thread whose environment has the channel of the process.
  const channel = readSafely(() => process?.channel?.fd, 0) ?? 0
  const inputs = new Set<unknown>([0, channel])
  return process?._getActiveHandles?.().some((handle) => inputs.has(handle.fd) && !handle.isPaused?.()) ?? false
}
