import type { Stop } from '@tacho/contract/policies/stop.ts'
import type { PageAfter, RowFor } from '../engine/page.ts'

export interface StopRow extends RowFor<Omit<Stop, 'isKnown'>> {
  environmentId: string
  /** Names that clients may report for the target. */
  names: string[]
  stopperKind: 'operator' | 'token'
  stopperId: string
}

export type NewStop = Pick<
  StopRow,
  'environmentId' | 'id' | 'scope' | 'target' | 'reason' | 'stoppedAt' | 'stopperKind' | 'stopperId' | 'stoppedBy'
>

export type StopMade =
  | { outcome: 'stopped' | 'existing'; stop: StopRow; isKnown: boolean }
  | { outcome: 'too_many' }
  | { outcome: 'too_many_names' }
  | { outcome: 'no_environment' }

/** `run`: the external id of a run, whose stops are listed, also those that have ended. */
export interface StopFilter {
  inEffect: boolean
  run?: string | undefined
}

export type StopPage = PageAfter<{ id: string }>

/** What a client may report of a call, or of a request. */
export interface StopSubject {
  runId: string | null
  sessionIds: readonly (string | null)[]
  /** Ids and names. */
  agents: readonly (string | null)[]
}

export function isStopped({ scope, names }: Pick<StopRow, 'scope' | 'names'>, subject: StopSubject): boolean {
  const { runId, sessionIds, agents } = subject
  if (scope === 'environment') return true
  const reported = { run: [runId], session: sessionIds, agent: agents }[scope]
  return reported.some((name) => name !== null && names.includes(name))
}

/** The limit of a condition. A client that cannot compile it would block every call. */
export const CONDITION_CHARS = 4_096

export function stopCondition({ scope, names }: Pick<StopRow, 'scope' | 'names'>): string {
  const list = JSON.stringify(names)
  switch (scope) {
    case 'environment':
      return 'true'
    case 'agent':
      return `agent.id in ${list} || agent.name in ${list}`
    case 'session':
    case 'run':
      return `${scope}.id in ${list}`
  }
}
