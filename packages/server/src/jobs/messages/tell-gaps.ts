/** Once per run, after the time in which a retry or a spool can still fill the gaps. */
import { gapsNews } from '../../domain/messages/notification.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'
import type { Storage } from '../../storage/storage.ts'

type Options = HandlerOptions<'tellOfRun' | 'findRun'> & { pages: Pick<RunPages, 'urlOf'> }

export function tellGaps({ storage, pages, now }: Options): ItemHandler {
  return {
    kind: 'tell_gaps',
    batch: 50,
    async perform({ environmentId, subjectId }, workHold) {
      const run = await storage.findRun(environmentId, subjectId)
      const data = run && gapsNews(environmentId, run)
      if (data === null) return 'done'
      const url = await pages.urlOf(environmentId, subjectId)
      const news = { type: 'run.incomplete', at: now(), data: { ...data, url } } as const
      await storage.tellOfRun(workHold, environmentId, subjectId, news)
      return 'ended'
    },
    giveUp: async () => 'done',
  }
}

export type RunPages = ReturnType<typeof runPages>

/** With ids, so that a renamed workspace is found. Null: the environment was deleted. `run` is an internal id. */
export function runPages(storage: Pick<Storage, 'findEnvironment'>, publicUrl: () => string) {
  async function placeOf(environmentId: string) {
    const environmentRow = await storage.findEnvironment(environmentId)
    if (!environmentRow) return null
    const { name: environment, workspaceId } = environmentRow
    return { environment, workspaceId, url: `${publicUrl()}/w/${workspaceId}/${environmentId}` }
  }
  return {
    placeOf,
    async urlOf(environmentId: string, run: string): Promise<string | null> {
      const place = await placeOf(environmentId)
      return place && `${place.url}/runs/${run}`
    },
  }
}
