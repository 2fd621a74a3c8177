/** Which tools are in trouble, so that a later success can be reported as a recovery of the very same issue. */
import type { IssueReport } from '../issue-records.ts'

const REMEMBERED = 1_000

export interface Recoveries {
  /** A tool was blocked or failed. */
  troubled(agent: string, toolName: string, report: IssueReport): void
  /** It ran: the reports that are to be answered by a recovery. */
  recovered(agent: string, toolName: string): IssueReport[]
}

/** Bounded: the tool that has been in trouble for longest is forgotten first. */
export function createRecoveries(): Recoveries {
  const open = new Map<string, Map<string, IssueReport>>()
  const keyOf = (agent: string, toolName: string) => JSON.stringify([agent, toolName])
  return {
    troubled(agent, toolName, report) {
      const key = keyOf(agent, toolName)
      const reports = open.get(key) ?? new Map<string, IssueReport>()
      open.delete(key)
      open.set(key, reports)
      // The facts that the service groups by: the same ones are one issue and need one recovery.
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
