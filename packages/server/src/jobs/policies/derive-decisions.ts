/**
 * Judges recorded decisions again, a moment after they are stored, and opens an issue if the service decides otherwise.
 * Appends queue decisions within a budget. Each is examined once, whatever the result.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { STOP_POLICY } from '@tacho/contract/engine/words.ts'
import type { RuntimePolicy } from '@tacho/contract/policies/runtime-config.ts'
import { textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import type { Policy } from '@tacho/policy/decide.ts'
import {
  deriveDecision,
  namedVersions,
  type Derivation,
  type Difference,
} from '../../domain/policies/derived-decision.ts'
import { readFailureSubject, type NewFailure } from '../../storage/issues/issues.ts'
import type { DecisionRow } from '../../storage/policies/policies.ts'
import { uuidv7, type Random } from '../../storage/engine/uuid.ts'
import { groupedFailure } from '../issues/find-failures.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'

type Acts = 'readDecisions' | 'findDeployedVersions' | 'readConfiguration' | 'recordFailures'

interface Options extends HandlerOptions<Acts> {
  random: Random
  onDerived: (result: Derivation['result'], decisions: number) => void
}

const SLOTS = 2
const PER_ITEM = 200
/** Cached by revision, because the configuration of a revision never changes. */
const CONFIGURATIONS_KEPT = 50

export function deriveDecisions({ storage, now, random, onDerived }: Options): ItemHandler {
  const configurations = new LRUCache<string, RuntimePolicy[]>({ max: CONFIGURATIONS_KEPT })

  /** The policies that the environment serves now, if the client had the same revision. Null: it had another one. */
  async function policiesOf(environmentId: string, revision: string | null): Promise<RuntimePolicy[] | null> {
    if (revision === null) return null
    const key = `${environmentId} ${revision}`
    const known = configurations.get(key)
    if (known) return known
    const served = await storage.readConfiguration(environmentId, null).catch(() => null)
    if (served?.revision !== revision || served.text === null) return null
    const { policies } = JSON.parse(served.text) as { policies: RuntimePolicy[] }
    configurations.set(key, policies)
    return policies
  }

  async function derive(environmentId: string, row: DecisionRow, starts: ReadonlyMap<string, string>) {
    const payload = JSON.parse(row.payload) as Json
    const asked = namedVersions(payload)
    if (asked === null) return { result: 'unknown_version' } as const
    const inForce = await policiesOf(environmentId, textAt(payload, 'revision'))
    const served = asked.map(([id, number]) => {
      return inForce?.find((policy) => policy.policyId === id && policy.version === String(number))
    })
    const named = served.every((policy): policy is RuntimePolicy => policy !== undefined)
      ? served
      : (await storage.findDeployedVersions(environmentId, asked)).map(({ number, ...version }): Policy => {
          return { ...version, version: String(number) }
        })
    // Leave out stops: one can begin and end while a client still has the previous configuration.
    const others = inForce?.filter(({ policyId }) => !policyId.startsWith(STOP_POLICY)) ?? null
    const start = starts.get(startKey(payload)) ?? null
    return deriveDecision(row, payload, { named, inForce: others, start })
  }

  return {
    kind: 'derive_decisions',
    batch: SLOTS,
    inTurn: true,
    async perform({ environmentId, subjectId }) {
      const subject = readFailureSubject(subjectId)
      const decided = subject?.span && (await storage.readDecisions(environmentId, subject.run, subject.span))
      if (!decided) return 'done'
      const { run, events } = decided
      const starts = new Map(
        events.flatMap(({ eventType, payload }) =>
          eventType === 'TOOL_START' ? [[startKey(JSON.parse(payload) as Json), payload] as const] : [],
        ),
      )
      const differing: NewFailure[] = []
      const results: Derivation['result'][] = []
      for (const row of events.filter(({ eventType }) => eventType === 'POLICY_DECISION').slice(0, PER_ITEM)) {
        await turn()
        const derivation = row.payloadDamaged
          ? ({ result: 'unknown_facts' } as const)
          : await derive(environmentId, row, starts)
        results.push(derivation.result)
        if (derivation.result === 'differs') differing.push(failureOf(row, derivation, () => uuidv7(now(), random)))
      }
      if (differing.length > 0) await storage.recordFailures(environmentId, run.runId, differing, now())
      for (const [result, some] of Map.groupBy(results, (one) => one)) onDerived(result, some.length)
      return 'done'
    },
    giveUp: async () => 'done',
  }
}

const startKey = (payload: Json): string =>
  JSON.stringify(['toolName', 'inputHash', 'toolCallId'].map((member) => textAt(payload, member)))

function failureOf(row: DecisionRow, { toolName, policyId, recorded, derived }: Difference, newId: () => string) {
  const { eventId, clientId, sessionId, agentName, time } = row
  const agentId = row.agentId ?? agentName
  const error = { type: null, message: `recorded ${recorded}, derived ${derived}`, stack: null, causes: [] }
  const seen = { kind: 'DECISION_DIFFERS', agent: agentId, toolName, model: null, policyId, error } as const
  const { decision, ...grouped } = groupedFailure(seen, agentName, null)
  return {
    id: newId(),
    eventId,
    clientId,
    sessionId,
    agentId,
    promptVersionId: null,
    time,
    ...grouped,
    payload: JSON.stringify({ toolName, policyId, recorded, derived }),
    decision: { ...decision, newIssueId: newId() },
  }
}
