/** An entry of Node's list of handles, which is undocumented but in all its versions. */
interface Handle {
  fd?: number
  isPaused?: () => boolean
}

/**
 * Whether the host reads its standard input. Node lists an input as it lists an output (idle-host.ts), but that of a server on stdio, such
 * as one of MCP, keeps the process running.
 */
export function readsInput(): boolean {
  const { process } = globalThis as { process?: { _getActiveHandles?: () => readonly Handle[] } }
  return process?._getActiveHandles?.().some((handle) => handle.fd === 0 && !handle.isPaused?.()) ?? false
}
