import type { RunProblem } from '@tacho/contract/runs/run-problem.ts'
import { problemOf } from '@tacho/contract/runs/problem.ts'
import { textAt } from '@tacho/contract/record/payload-reader.ts'
import type { ProblemEvent } from '../../storage/record/events.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'

/** A removed payload no longer says why. */
export function toRunProblem({ eventId, eventType, label, time, payload, problem }: ProblemEvent): RunProblem {
  const said = JSON.parse(payload) as Record<string, unknown>
  const told = problemOf({ eventType, label, payload: said })
  return {
    eventId,
    eventType,
    timestamp: isoTime(time),
    kind: problem,
    name: told?.name ?? label,
    why: told?.why ?? '',
    outcome: told?.outcome ?? null,
    approvalId: eventType === 'POLICY_DECISION' ? textAt(said, 'approvalId') : null,
  }
}
