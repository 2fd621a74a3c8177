import { Readable } from 'node:stream'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../web/deps.ts'
import { holderOf } from '../tenants/holder.ts'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import { inTurns } from '../web/turns.ts'
import { demandPace } from '../web/unread-replies.ts'
import { admitAgain } from '../people/access.ts'
import { currentActor, type CallerDeps } from '../people/caller.ts'

interface Export {
  request: FastifyRequest
  reply: FastifyReply
  name: string
  begin: () => Promise<AsyncIterable<string | Uint8Array>>
}

export function createExportStreams(
  deps: Pick<Deps, 'draining'> & CallerDeps,
  { atOnce, ofWorkspace }: { atOnce: number; ofWorkspace: number },
) {
  const { draining } = deps
  const open = new Shares({ most: atOnce, ofWorkspace, ofCredential: Math.max(2, ofWorkspace / 2) })

  async function* whileAllowed(pieces: Awaited<ReturnType<Export['begin']>>, { request, reply }: Export) {
    for await (const piece of inTurns(pieces)) {
      const actor = await currentActor(deps, request)
      // A regular end would make the file look complete.
      if (actor === null || admitAgain(request, actor) !== null) return void reply.raw.destroy()
      yield piece
    }
  }

  return async (sent: Export): Promise<FastifyReply | Refusal> => {
    const { request, reply, name, begin } = sent
    const { replyType = 'application/octet-stream' } = request.routeOptions.config.route ?? {}
    const type = replyType.startsWith('text/') ? `${replyType}; charset=utf-8` : replyType
    // For HEAD, the framework would read the stream to its end.
    if (request.method === 'HEAD') return reply.type(type).send()
    if (draining()) return refuse('shutting_down')
    const holder = holderOf(request)
    if (!open.take(holder, 1)) return refuse('overloaded', 'Too many exports are in progress')
    const leave = demandPace(request.raw.socket, LIMITS.exportPaceBytes)
    let isCounted = true
    const ended = (): void => {
      if (!isCounted) return
      isCounted = false
      open.add(holder, -1)
      leave()
    }
    try {
      const stream = Readable.from(whileAllowed(await begin(), sent), { objectMode: false })
      stream.once('error', (err) =>
        request.log.error({ err, file: name }, 'an export broke off: its file is not whole'),
      )
      stream.once('close', () => {
        ended()
        if (!stream.readableEnded && !stream.errored) {
          request.log.warn({ file: name }, 'an export was left by its client: its file is not whole')
        }
      })
      reply.raw.once('close', () => stream.destroy())
      return reply.header('content-disposition', `attachment; filename="${name}"`).type(type).send(stream)
    } catch (error) {
      ended()
      throw error
    }
  }
}
