/** Tells webhooks about runs with gaps, once each, after the time in which a retry or a spool can still fill them. */
import { gapsNews } from '../domain/completeness.ts'
import type { CompletenessStore } from '../storage/completeness.ts'
import type { RunStore } from '../storage/runs.ts'
import type { WorkHold, WorkItem, WorkStore } from '../storage/work.ts'
import type { WorkHandler } from './work.ts'

export interface TellGapsOptions {
  storage: CompletenessStore & Pick<RunStore, 'findRun'> & Pick<WorkStore, 'finishWork'>
  owner: string
  now: () => number
}

export function tellGaps({ storage, owner, now }: TellGapsOptions): WorkHandler {
  const kind = 'tell_gaps'
  const hold = (item: WorkItem): WorkHold => ({ kind, owner, items: [item] })
  return {
    kind,
    batch: 50,
    async perform(items) {
      for (const item of items) {
        const { environmentId, subjectId } = item
        const run = await storage.findRun(environmentId, subjectId)
        const data = run && gapsNews(environmentId, run)
        await storage.tellGaps(hold(item), environmentId, data && { at: now(), data })
      }
    },
    async giveUp(item) {
      await storage.finishWork(hold(item))
    },
  }
}
