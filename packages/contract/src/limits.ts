/**
 * Every number of the interface, once, with its unit in the name.
 * Source: the interface's section "Limits"; what it leaves open is decided in docs/decisions.
 */
export const LIMITS = {
  batchEvents: 100,
  batchBytes: 1_048_576,
  payloadBytes: 262_144,
  payloadDepthLevels: 200,
  eventIdChars: 160,
  clientIdChars: 120,
  runIdChars: 255,
  eventTypeChars: 50,
  labelChars: 255,
  /** Every text of a client that has no limit of its own. */
  textChars: 1_024,
  eventPastMs: 30 * 24 * 60 * 60 * 1000,
  eventFutureMs: 5 * 60 * 1000,
  issueRecordBytes: 262_144,
  /** The last millisecond that ISO 8601 tells with a year of four digits. */
  detectedAtMaxMs: 253_402_300_799_999,
  /** Sets of facts that one issue may hold after merges. */
  issueFingerprints: 50,
  fingerprintChars: 100,
  commentChars: 10_000,
  assigneeChars: 200,
  runsPageDefault: 25,
  runsPageMax: 100,
  runDetailEvents: 100,
  eventsPageDefault: 100,
  eventsPageMax: 200,
  /** A page of events ends here even when `limit` is not reached; it holds at least one event. */
  pageBytes: 4 * 1_048_576,
  /** Any other page ends here even when `limit` is not reached; it holds at least one item. */
  listBytes: 1_048_576,
  /** A token number of an LLM_CALL counts when it is an integer from 0 to this. */
  tokensPerCall: 1_000_000_000,
  /** A cost of an LLM_CALL counts when it is a number from 0 to this. */
  costPerCall: 1_000_000,
  approvalTimeoutMsMin: 1_000,
  approvalTimeoutMsMax: 24 * 60 * 60 * 1000,
  approvalTimeoutMsDefault: 5 * 60 * 1000,
  /** Also the bound of an approval's reason. */
  approvalBodyBytes: 65_536,
  inputHashDigitsMin: 32,
  inputHashDigitsMax: 128,
  /** Longest `wait` when an approval is read. */
  approvalWaitSecondsMax: 30,
  decisionReasonChars: 2_000,
  /** Characters of a recorded tool input that are shown beside an approval. */
  inputPreviewChars: 65_536,
  /** Approvals that are decided together. */
  decisionsMax: 200,
  /** Content of a prompt, in UTF-8. */
  promptContentBytes: 262_144,
  /** Room for the content however much of it is escaped. */
  promptBodyBytes: 2 * 1_048_576,
  policyIdChars: 100,
  descriptionChars: 2_000,
  noteChars: 2_000,
  /** What may be in force in an environment at a time. Clients evaluate every policy before every tool call. */
  deployedPolicies: 500,
  deployedPrompts: 500,
  deployedPromptBytes: 4 * 1_048_576,
  /** Prompts and policies that one publication names. */
  deploymentItems: 1_000,
  simulationDaysMax: 30,
  /** Recorded tool calls that one simulation looks at, the newest. */
  simulationCalls: 1_000_000,
  /** Simulations of an environment that have not ended. */
  simulationsWaiting: 4,
  /** Ended simulations of an environment that are kept, the newest. */
  simulationsKept: 100,
  operatorBodyBytes: 262_144,
  searchChars: 255,
  /** Runs whose ids begin with a text: so many of them are looked at, the last ones in the order of ids. */
  searchedRunIds: 1_000,
  /** Agents whose names are looked at, the newest of an environment. */
  searchedAgents: 1_000,
  /** Agents of one name whose runs are found, the newest. */
  searchedAgentsOfName: 20,
  /** A filtered page of a timeline ends when so many rows were looked at. */
  eventsLookedAt: 5_000,
  operatorPageDefault: 100,
  operatorPageMax: 200,
  nameChars: 100,
  webhookUrlChars: 2_000,
  /** Of one webhook; the oldest beyond it are dropped. */
  webhookPendingDeliveries: 1_000,
  auditFilterChars: 255,
  emailChars: 254,
  passwordCharsMin: 12,
  passwordCharsMax: 256,
  credentialChars: 255,
  codeChars: 64,
  /** An invitation is good for so long. */
  invitationMs: 7 * 24 * 60 * 60 * 1000,
  /** A sign-in holds for so long, however much it is used. */
  sessionMs: 7 * 24 * 60 * 60 * 1000,
  requestsPerSecondDefault: 5_000,
  /** Of an operator token or session. */
  operatorRequestsPerSecondDefault: 500,
  requestsPerSecondMax: 1_000_000,
} as const
