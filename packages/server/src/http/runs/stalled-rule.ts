import type { StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import type { RunActivity } from '@tacho/contract/engine/words.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import { closeAfterMinutes, DEFAULT_STALLED_RULE, type StalledRuleRow } from '../../storage/data/stalled.ts'
import type { Storage } from '../../storage/storage.ts'
import type { OperatorDeps } from '../web/serve.ts'

export function stalledRuleRoutes({ serve, storage, work }: OperatorDeps): void {
  serve('readStalledRule', async ({ environment }) => {
    return toRule(await storage.readStalledRule(environment.id))
  })

  serve('changeStalledRule', async ({ body, environment: { id }, at, audit }) => {
    const before = (await storage.readStalledRule(id)) ?? DEFAULT_STALLED_RULE
    const { idleMinutes = before.idleMinutes, closeAs = before.closeAs } = body
    const rule = { idleMinutes, closeAs }
    await storage.changeStalledRule(id, rule, at, audit(id, { from: before, to: rule }))
    work.wake('close_stalled')
    return toRule(rule)
  })
}

function toRule(row: StalledRuleRow | null): StalledRule {
  const rule = row ?? DEFAULT_STALLED_RULE
  return { ...rule, closeAfterMinutes: closeAfterMinutes(row), source: row === null ? 'default' : 'environment' }
}

export async function activitiesOf(
  storage: Pick<Storage, 'readActivityRule'>,
  environmentId: string,
  rows: readonly RunRow[],
  now: number,
): Promise<ReadonlyMap<string, RunActivity>> {
  const running = rows.filter(({ status }) => status === 'RUNNING')
  if (running.length === 0) return new Map()
  const runIds = running.map(({ runId }) => runId)
  const { stalledBefore, waiting } = await storage.readActivityRule(environmentId, runIds, now)
  return new Map(
    running.map(({ id, runId, lastEventAt }): [string, RunActivity] => {
      if (waiting.includes(runId)) return [id, 'WAITING_FOR_APPROVAL']
      return [id, lastEventAt < stalledBefore ? 'STALLED' : 'ACTIVE']
    }),
  )
}
