/** `tacho approvals watch`: follows approvals by the stream of the server; without a terminal, a line for each change. */
import { setTimeout as sleep } from 'node:timers/promises'
import { allItems } from '@tacho/client/items.ts'
import { BrokenStream } from '@tacho/client/messages.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { answered, Refused, type OperatorClient, unreachable } from '../engine/operator-client.ts'
import { failed } from '../engine/stop.ts'
import { printJsonLine, printLine } from '../engine/output.ts'
import { approvalLine, WITHDRAWN } from './approval-lines.ts'

/** Follows approvals: reads the server's stream and reconnects when it ends. */

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 10_000
const REMEMBERED = 10_000

/** An operator erased this approval, so nothing of it may be shown any more. */
interface ErasedApproval {
  id: string
  status: 'ERASED'
}

type Change = OperatorApproval | ErasedApproval

/**
 * Yields every pending approval, then every new, changed or erased one, each state once. Ends only with the signal.
 * `tell` receives the reason for a reconnect.
 */
export async function* approvalChanges(
  client: OperatorClient,
  environmentId: string,
  signal?: AbortSignal,
  tell: (trouble: string) => void = (trouble) => void process.stderr.write(`${trouble}\n`),
): AsyncGenerator<Change> {
  const seen = new Map<string, string>()
  const isNews: IsNews = (hint) => seen.get(hint.id) !== stateOf(hint)
  const pending = () => [...seen].filter(([, status]) => status === 'PENDING').map(([id]) => id)
  for (let attempt = 0; ; attempt++) {
    try {
      for await (const approvals of streamed(client, environmentId, { isNews, pending }, signal)) {
        attempt = 0
        for (const approval of approvals.filter(isNews)) {
          seen.delete(approval.id)
          seen.set(approval.id, stateOf(approval))
          yield approval
        }
        for (const id of seen.keys().take(Math.max(0, seen.size - REMEMBERED))) seen.delete(id)
      }
    } catch (error) {
      if (signal?.aborted) return
      const trouble = temporaryTrouble(client.url, error)
      if (trouble === null) throw error
      if (attempt === 0) tell(`${trouble} Retrying until it answers.`)
    }
    await sleep(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt))
  }
}

type IsNews = (hint: Hint) => boolean
type Hint = Pick<Change, 'id' | 'status'> & { isWithdrawn?: boolean; waiting?: OperatorApproval['waiting'] }

/** The state of an approval. A withdrawn request is not shown as waiting. */
function stateOf({ status, isWithdrawn, waiting }: Hint): string {
  return status === 'PENDING' && (isWithdrawn ?? waiting?.state === 'withdrawn') ? WITHDRAWN : status
}

/** State that this reader already has. */
interface Known {
  isNews: IsNews
  pending: () => string[]
}

/** Yields the approvals of one connection, until it ends. */
async function* streamed(
  client: OperatorClient,
  environmentId: string,
  { isNews, pending }: Known,
  signal: AbortSignal | undefined,
): AsyncGenerator<Change[]> {
  const params = { environmentId }
  const read = (id: string) => readApproval(client, environmentId, id)
  const { value } = answered(client.url, await client.whole.streamApprovals({ params }, { signal }))
  for await (const message of value) {
    if (message.event === 'snapshot') {
      const { items, more } = message.data
      const all = more ? await allItems(client.listApprovals, { params, query: { status: 'PENDING' } }) : items
      const listed = new Set(all.map(({ id }) => id))
      const others = pending().filter((id) => !listed.has(id))
      yield [...all, ...(await Promise.all(others.map(read)))]
    } else if (message.event === 'changed') {
      yield await Promise.all(message.data.items.filter(isNews).map(({ id }) => read(id)))
    } else if (message.event === 'end' && message.data.reason === 'access_ended') {
      throw failed('The operator token was revoked or has expired.')
    }
  }
}

async function readApproval(client: OperatorClient, environmentId: string, approvalId: string): Promise<Change> {
  try {
    return await client.readApproval({ params: { environmentId, approvalId } })
  } catch (error) {
    if (error instanceof Refused && error.result.status === 404) return { id: approvalId, status: 'ERASED' }
    throw error
  }
}

/** The reason for reconnecting, as a sentence; null if reconnecting cannot help. */
function temporaryTrouble(url: string, error: unknown): string | null {
  if (error instanceof BrokenStream) return unreachable(url, error.cause)
  return error instanceof Refused && error.result.temporary ? error.message : null
}

/** `tacho approvals watch` without a terminal, or with --no-decide. */

/** Prints each new or changed approval on a line, until interrupted. */
export async function watch(client: OperatorClient, environmentId: string, asJson: boolean): Promise<void> {
  for await (const approval of approvalChanges(client, environmentId)) {
    if (approval.status !== 'ERASED') printApproval(approval, asJson)
  }
}

function printApproval(approval: OperatorApproval, asJson: boolean): void {
  if (asJson) printJsonLine(approval)
  else printLine(approvalLine(approval, Date.now()))
}
