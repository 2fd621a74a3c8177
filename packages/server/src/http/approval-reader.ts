import type { FastifyInstance } from 'fastify'
import { Gauge } from 'prom-client'
import { createApprovalFeed, type ApprovalFeed } from './approval-feed.ts'
import type { Deps } from './deps.ts'
import { createCurrentApprovals, type CurrentApprovals } from './current-approvals.ts'

export interface ApprovalReader {
  feed: ApprovalFeed
  current: CurrentApprovals
}

export function createApprovalReader(app: FastifyInstance, { storage, metrics, now }: Deps): ApprovalReader {
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
  app.addHook('preClose', async () => feed.close())
  return { feed, current: createCurrentApprovals({ storage, now, onChange: () => feed.look() }) }
}
