/** A success after a failure reports a recovery of the same issue. */
import type { IssueReport } from '../delivery/issue-records.ts'

const REMEMBERED = 1_000

export interface Recoveries {
  /** Called after a tool was blocked or failed. */
  troubled(agent: string, toolName: string, report: IssueReport): void
  /** After a tool ran. Returns the reports that need a recovery. */
  recovered(agent: string, toolName: string): IssueReport[]
}

/** Bounded: forgets the tool that has been failing for the longest time. */
export function createRecoveries(): Recoveries {
  const open = new Map<string, Map<string, IssueReport>>()
  const keyOf = (agent: string, toolName: string) => JSON.stringify([agent, toolName])
  return {
    troubled(agent, toolName, report) {
      const key = keyOf(agent, toolName)
      const reports = open.get(key) ?? new Map<string, IssueReport>()
      open.delete(key)
      open.set(key, reports)
      // The service groups by these facts: equal facts are one issue and need one recovery.
      const { detectionType, policyId, payload } = report
      if (reports.size < 20) reports.set(JSON.stringify([detectionType, policyId, payload?.['reasonCode']]), report)
      const [oldest] = open.keys()
      if (open.size > REMEMBERED && oldest !== undefined) open.delete(oldest)
    },
    recovered(agent, toolName) {
      const key = keyOf(agent, toolName)
      const reports = [...(open.get(key)?.values() ?? [])]
      open.delete(key)
      return reports
    },
  }
}
