/** Approvals as they appear and change: the server's stream, opened again whenever it ends. */
import { setTimeout as sleep } from 'node:timers/promises'
import type {
  ApprovalChanges,
  ApprovalSnapshot,
  OperatorApproval,
  StreamEnd,
} from '@tacho/contract/operator/approval.ts'
import { Refused, type OperatorClient } from '../operator-client.ts'
import { serverEvents } from '../server-events.ts'
import { unreachable } from '../server-trouble.ts'
import { failed, Stop } from '../stop.ts'

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 10_000
const REMEMBERED = 10_000

/**
 * Every pending approval, and from then on every one that is new or has changed; each state once. Ends only with the
 * signal.
 */
export async function* approvalChanges(
  client: OperatorClient,
  environmentId: string,
  signal: AbortSignal | null = null,
): AsyncGenerator<OperatorApproval> {
  const seen = new Map<string, string>()
  const isNews = ({ id, status }: Pick<OperatorApproval, 'id' | 'status'>) => seen.get(id) !== status
  for (let attempt = 0; ; attempt++) {
    try {
      for await (const approvals of streamed(client, environmentId, isNews, signal)) {
        attempt = 0
        for (const approval of approvals.filter(isNews)) {
          seen.delete(approval.id)
          seen.set(approval.id, approval.status)
          yield approval
        }
        for (const id of seen.keys().take(Math.max(0, seen.size - REMEMBERED))) seen.delete(id)
      }
    } catch (error) {
      if (signal?.aborted) return
      if (!(error instanceof Refused) || !error.isTemporary) throw error
      if (attempt === 0) process.stderr.write(`${error.message} Waiting for it.\n`)
    }
    await sleep(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt))
  }
}

type IsNews = (hint: Pick<OperatorApproval, 'id' | 'status'>) => boolean

/** What one connection tells, until it ends. */
async function* streamed(
  client: OperatorClient,
  environmentId: string,
  isNews: IsNews,
  signal: AbortSignal | null,
): AsyncGenerator<OperatorApproval[]> {
  const params = { environmentId }
  const { body } = await client.callResponse('streamApprovals', { params }, signal)
  if (body === null) throw failed(`${client.url} answered with nothing.`)
  try {
    for await (const { event, data } of serverEvents(body)) {
      if (event === 'snapshot') {
        const { items, more } = JSON.parse(data) as ApprovalSnapshot
        yield more ? await client.allItems('listApprovals', { params, query: { status: 'PENDING' } }) : items
      } else if (event === 'changed') {
        const { items } = JSON.parse(data) as ApprovalChanges
        const read = ({ id }: { id: string }) =>
          client.call('readApproval', { params: { environmentId, approvalId: id } })
        yield await Promise.all(items.filter(isNews).map(read))
      } else if (event === 'end') {
        const { reason } = JSON.parse(data) as StreamEnd
        if (reason === 'access_ended') throw failed('The operator token is no longer good.')
      }
    }
  } catch (error) {
    throw error instanceof Stop ? error : new Refused(null, unreachable(client.url, error))
  }
}
