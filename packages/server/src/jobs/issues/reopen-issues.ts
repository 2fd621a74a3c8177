import { uuidv7, type Random } from '../../storage/engine/uuid.ts'
import type { WorkItem } from '../../storage/engine/work.ts'
import type { HandlerOptions, ItemHandler, Next } from '../engine/work.ts'

export function reopenIssues({
  storage,
  now,
  random,
}: HandlerOptions<'endIgnoring'> & { random: Random }): ItemHandler {
  async function end({ environmentId, subjectId: id }: WorkItem): Promise<Next> {
    await storage.endIgnoring({ environmentId, id }, uuidv7(now(), random), now())
    return 'ended'
  }
  return { kind: 'reopen_issue', batch: 50, perform: end, giveUp: end }
}
