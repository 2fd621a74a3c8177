/** How the public and the operator API read approvals: as the clock has them now, and as they change. */
import type { FastifyInstance } from 'fastify'
import { Gauge } from 'prom-client'
import { createApprovalFeed, type ApprovalFeed } from './approval-feed.ts'
import type { Deps } from './deps.ts'
import { createCurrentApprovals, type CurrentApprovals } from './current-approvals.ts'

export interface ApprovalReader {
  feed: ApprovalFeed
  current: CurrentApprovals
}

/** Ends all waiting requests when the app begins to close. */
export function createApprovalReader(app: FastifyInstance, { storage, metrics, now }: Deps): ApprovalReader {
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
  return { feed, current: createCurrentApprovals({ storage, now, onChange: () => feed.look() }) }
}
