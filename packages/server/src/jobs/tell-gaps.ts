/** Once per run, after the time in which a retry or a spool can still fill the gaps. */
import { gapsNews } from '../domain/run-news.ts'
import { oneByOne } from './one-by-one.ts'
import type { Storage } from '../storage/storage.ts'
import type { RunPages } from './run-pages.ts'
import type { WorkHandler } from './work.ts'

export interface TellGapsOptions {
  storage: Pick<Storage, 'tellOfRun' | 'findRun' | 'finishWork' | 'postponeWork'>
  pages: Pick<RunPages, 'urlOf'>
  owner: string
  now: () => number
}

export function tellGaps({ storage, pages, owner, now }: TellGapsOptions): WorkHandler {
  return oneByOne({
    kind: 'tell_gaps',
    batch: 50,
    storage,
    owner,
    async perform({ environmentId, subjectId }, hold) {
      const run = await storage.findRun(environmentId, subjectId)
      const data = run && gapsNews(environmentId, run)
      if (data === null) return 'done'
      const url = await pages.urlOf(environmentId, subjectId)
      const news = { type: 'run.incomplete', at: now(), data: { ...data, url } } as const
      await storage.tellOfRun(hold, environmentId, subjectId, news)
      return 'ended'
    },
    giveUp: () => 'done',
  })
}
