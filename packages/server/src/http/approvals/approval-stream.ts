/** Server-sent events: a snapshot, then hints about changes. An erasure of approvals causes a new snapshot. */
import { Readable } from 'node:stream'
import type { ApprovalChanges, ApprovalSnapshot, StreamEnd } from '@tacho/contract/approvals/operator-approval.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { ApprovalReader } from './approval-reader.ts'
import type { Deps } from '../web/deps.ts'
import { refuse } from '../web/reply-error.ts'
import { serveRoute } from '../web/serve-route.ts'
import { environmentOf, workspaceOf } from '../people/access.ts'
import { currentActor } from '../people/caller.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import { namedApprovals } from './decide.ts'

export interface StreamOptions {
  mostStreams?: number
  ofWorkspace?: number
  ofCaller?: number
}

const STREAM_TYPE = 'text/event-stream; charset=utf-8'
const SNAPSHOT_ROWS = 100
const SNAPSHOT_BYTES = 256 * 1024
const BACKLOG_BYTES = 512 * 1024
const RECONNECT_MS = 1_000
/** Access is checked again before each heartbeat and each message. */
const BEAT_MS = 2_000

export function approvalStreamRoutes(
  app: FastifyInstance,
  deps: Deps,
  { feed, current }: Pick<ApprovalReader, 'feed' | 'current'>,
  { mostStreams = 1_000, ofWorkspace = 200, ofCaller = 20 }: StreamOptions = {},
): void {
  const { storage, draining, now } = deps
  const open = new Shares({ most: mostStreams, ofWorkspace, ofCredential: ofCaller })

  serveRoute(app, OPERATOR_ROUTES.streamApprovals, deps, async ({ request, reply }) => {
    const environment = environmentOf(request)
    if (draining()) return refuse('shutting_down')
    // Answer HEAD here: the framework would read the stream to its end, which never comes.
    if (request.method === 'HEAD') return reply.type(STREAM_TYPE).send()
    const holder = holderOf(request)
    if (!open.take(holder, 1)) return refuse('overloaded', 'Too many streams are open')
    return stream(environment.id, request, reply, () => open.add(holder, -1))
  })

  async function stream(
    environmentId: string,
    request: FastifyRequest,
    reply: FastifyReply,
    close: () => void,
  ): Promise<FastifyReply> {
    const messages = new Readable({ read() {} })
    messages.once('close', close)
    let over = false
    const send = (text: string) => {
      if (over) return
      messages.push(text)
      if (messages.readableLength > BACKLOG_BYTES) reply.raw.destroy()
    }
    const end = (reason: StreamEnd['reason']) => {
      send(message('end', { reason } satisfies StreamEnd))
      if (!over) messages.push(null)
      over = true
    }
    // Changes that arrive before the snapshot are sent after it.
    const { promise: opened, resolve: openSent } = Promise.withResolvers<void>()
    let sent = opened
    let isRenewing = false
    const follower = {
      changed: (rows: ApprovalRow[]) => void sendIfAllowed(() => message('changed', hints(rows))),
      removed: renew,
      ended: () => end('shutting_down'),
    }
    const unfollow = await feed.follow(environmentId, follower).catch((error: unknown) => {
      messages.destroy()
      throw error
    })
    const beat = setInterval(() => void sendIfAllowed(() => ': heartbeat\n\n'), BEAT_MS)
    beat.unref()
    messages.once('close', () => {
      over = true
      clearInterval(beat)
      unfollow()
    })

    function sendIfAllowed(text: () => string | Promise<string>): Promise<void> {
      sent = sent.then(async () => {
        // Clients stay connected while the store does not answer.
        const stays = await hasAccess(request).catch(() => null)
        if (stays === false) end('access_ended')
        else send(await text())
      })
      return sent
    }

    function renew(): void {
      if (isRenewing) return
      isRenewing = true
      void sendIfAllowed(async () => {
        isRenewing = false
        try {
          return await snapshot(environmentId)
        } catch {
          // Close without a snapshot, because the client would otherwise keep erased data: it reconnects.
          reply.raw.destroy()
          return ''
        }
      })
    }

    try {
      send(`retry: ${RECONNECT_MS}\n\n${await snapshot(environmentId)}`)
    } catch (error) {
      messages.destroy()
      throw error
    }
    openSent()
    return reply.header('x-accel-buffering', 'no').type(STREAM_TYPE).send(messages)
  }

  async function hasAccess(request: FastifyRequest): Promise<boolean> {
    const actor = await currentActor(deps, request)
    return actor !== null && actor.roleIn(workspaceOf(request).id) !== null
  }

  async function snapshot(environmentId: string): Promise<string> {
    const { rows, more } = await current.read(environmentId, () =>
      storage.listApprovals(
        environmentId,
        { status: 'PENDING', withdrawn: 'without' },
        { limit: SNAPSHOT_ROWS, after: null },
      ),
    )
    const items = await namedApprovals(storage, environmentId, rows, now())
    let bytes = 0
    const past = items.findIndex((item) => (bytes += JSON.stringify(item).length) > SNAPSHOT_BYTES)
    const fitting = past === -1 ? items : items.slice(0, past)
    return message('snapshot', {
      items: fitting,
      more: more || items.length > fitting.length,
    } satisfies ApprovalSnapshot)
  }
}

function hints(changed: ApprovalRow[]): ApprovalChanges {
  return {
    items: changed.map(({ id, status, withdrawnAt }) => ({
      id,
      status,
      ...(withdrawnAt !== null && { isWithdrawn: true }),
    })),
  }
}

/** JSON contains no raw line breaks, so the data is one line. */
function message(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
