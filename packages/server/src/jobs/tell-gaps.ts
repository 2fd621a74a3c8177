/** Tells webhooks about runs with gaps, once each, after the time in which a retry or a spool can still fill them. */
import { gapsNews } from '../domain/run-news.ts'
import type { Storage } from '../storage/storage.ts'
import type { WorkHold, WorkItem } from '../storage/work.ts'
import type { RunPages } from './run-pages.ts'
import type { WorkHandler } from './work.ts'

export interface TellGapsOptions {
  storage: Pick<Storage, 'tellOfRun' | 'findRun' | 'finishWork'>
  pages: RunPages
  owner: string
  now: () => number
}

export function tellGaps({ storage, pages, owner, now }: TellGapsOptions): WorkHandler {
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
        if (data === null) await storage.finishWork(hold(item))
        else {
          const url = await pages.urlOf(environmentId, subjectId)
          const news = { type: 'run.incomplete', at: now(), data: { ...data, url } } as const
          await storage.tellOfRun(hold(item), environmentId, subjectId, news)
        }
      }
    },
    async giveUp(item) {
      await storage.finishWork(hold(item))
    },
  }
}
