import { progressNotification } from './message.ts'

const FIRST_MS = 1_000
const NEXT_MS = 5_000
/** Small, because progress must increase: the server's own values, which may follow, are then higher. */
const STEP = 1e-6

/** Shows a waiting client that the call is alive. */
export function reportProgress(
  toClient: (line: string) => Promise<void>,
  token: string | number,
  toolName: string,
): { stop(): void } {
  let count = 0
  let timer = setTimeout(report, FIRST_MS)
  function report(): void {
    count++
    const message = `Waiting for a person to approve ${toolName}`
    void toClient(progressNotification(token, count * STEP, message))
    timer = setTimeout(report, NEXT_MS)
  }
  return { stop: () => clearTimeout(timer) }
}
