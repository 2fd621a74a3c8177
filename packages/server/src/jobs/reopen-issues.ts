import type { Storage } from '../storage/storage.ts'
import { uuidv7, type Random } from '../storage/uuid.ts'
import type { WorkItem } from '../storage/work.ts'
import type { WorkHandler } from './work.ts'

export interface ReopenOptions {
  storage: Pick<Storage, 'endIgnoring'>
  now: () => number
  random: Random
}

const BATCH = 50

export function reopenIssues({ storage, now, random }: ReopenOptions): WorkHandler {
  const end = ({ environmentId, subjectId }: WorkItem) =>
    storage.endIgnoring({ environmentId, id: subjectId }, uuidv7(now(), random), now())
  return {
    kind: 'reopen_issue',
    batch: BATCH,
    async perform(items) {
      for (const item of items) await end(item)
    },
    giveUp: end,
  }
}
