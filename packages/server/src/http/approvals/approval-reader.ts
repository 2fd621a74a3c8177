import type { FastifyInstance } from 'fastify'
import { Gauge } from 'prom-client'
import { createApprovalFeed } from './approval-feed.ts'
import type { Deps } from '../web/deps.ts'
import { createCurrentApprovals } from './current-approvals.ts'
import { createSeenApprovals } from './seen-approvals.ts'

export type ApprovalReader = ReturnType<typeof createApprovalReader>

export function createApprovalReader(app: FastifyInstance, { storage, metrics, now }: Deps) {
  const feed = createApprovalFeed({
    storage,
    onError: (err) => app.log.warn({ err }, 'could not read changes of approvals; it will retry'),
  })
  new Gauge({
    name: 'tacho_approval_followers',
    help: 'Open long polls and streams for approvals',
    registers: [metrics.registry],
    collect() {
      this.set(feed.size())
    },
  })
  const seen = createSeenApprovals({
    storage,
    now,
    onError: (err) => app.log.warn({ err }, 'could not store which approvals are waited for'),
  })
  app.addHook('preClose', async () => {
    feed.close()
    await seen.close()
  })
  return { feed, seen, current: createCurrentApprovals({ storage, now, onChange: () => feed.look() }) }
}
