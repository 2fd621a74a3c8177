/** Once per run, after the time in which a retry or a spool can still fill the gaps. */
import { gapsNews } from '../../domain/messages/run-news.ts'
import type { RunPages } from './run-pages.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'

type Options = HandlerOptions<'tellOfRun' | 'findRun'> & { pages: Pick<RunPages, 'urlOf'> }

export function tellGaps({ storage, pages, now }: Options): ItemHandler {
  return {
    kind: 'tell_gaps',
    batch: 50,
    async perform({ environmentId, subjectId }, hold) {
      const run = await storage.findRun(environmentId, subjectId)
      const data = run && gapsNews(environmentId, run)
      if (data === null) return 'done'
      const url = await pages.urlOf(environmentId, subjectId)
      const news = { type: 'run.incomplete', at: now(), data: { ...data, url } } as const
      await storage.tellOfRun(hold, environmentId, subjectId, news)
      return 'ended'
    },
    giveUp: async () => 'done',
  }
}
