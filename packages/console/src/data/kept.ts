/** What retention keeps for a number of days. */
export const KEPT = [
  ['runDays', 'Runs', 'after their last event'],
  ['payloadDays', 'Payloads', 'the timeline stays'],
  ['issueDays', 'Resolved issues', 'and ignored ones'],
  ['approvalDays', 'Ended requests', 'for approval'],
  ['auditDays', 'Audit log', 'at least 30'],
] as const
export type KeptName = (typeof KEPT)[number][0]
