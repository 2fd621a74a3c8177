/** What the public and the operator API share about approvals. */
import type { FastifyInstance } from 'fastify'
import { Gauge } from 'prom-client'
import { createApprovalFeed, type ApprovalFeed } from './approval-feed.ts'
import type { Deps } from './deps.ts'
import { createSettledApprovals, type SettledApprovals } from './settled-approvals.ts'

export interface ApprovalDesk {
  feed: ApprovalFeed
  settled: SettledApprovals
}

/** Whoever waits is let go when the app begins to close. */
export function createApprovalDesk(app: FastifyInstance, { storage, metrics, now }: Deps): ApprovalDesk {
  const feed = createApprovalFeed({
    storage,
    onError: (err) => app.log.warn({ err }, 'changes of approvals could not be read; they are read again'),
  })
  new Gauge({
    name: 'tacho_approval_followers',
    help: 'Long polls and streams that wait for approvals',
    registers: [metrics.registry],
    collect() {
      this.set(feed.size())
    },
  })
  app.addHook('preClose', async () => feed.close())
  return { feed, settled: createSettledApprovals({ storage, now, onChange: () => feed.look() }) }
}
