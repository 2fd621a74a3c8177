/**
 * Every limit of the interface, with its unit in the name. The source is the section "Limits" of the interface;
 * docs/decisions covers what it leaves open.
 */
export const LIMITS = {
  batchEvents: 100,
  /** Requests of one connection that are not answered, or whose answers are unread. One more closes the connection. */
  pipelinedRequests: 32,
  /** Bytes that a connection may send after a request that waits. After them, the server stops reading. */
  pipelinedBytes: 16_384,
  idleConnections: 5_000,
  /** Messages to /mcp that wait for each token; four run at a time. */
  mcpMessagesWaiting: 100,
  /** Warnings about accepted events in one reply. */
  batchWarnings: 100,
  batchBytes: 1_048_576,
  /** An OTLP request after decompression. */
  otlpBytes: 20 * 1_048_576,
  /** Spans or log records of an OTLP request. */
  otlpItems: 10_000,
  /**
   * Attributes, values, events and links of an OTLP request: each can be only two bytes, and becomes several objects.
   */
  otlpValues: 500_000,
  /** Values and member names of any other JSON body, which is parsed without a pause between other requests. */
  bodyValues: 50_000,
  /** Size of all payloads from one OTLP request: a small body can repeat its resource in every span. */
  otlpPayloadBytes: 32 * 1_048_576,
  payloadBytes: 262_144,
  payloadDepthLevels: 200,
  eventIdChars: 160,
  clientIdChars: 120,
  runIdChars: 255,
  eventTypeChars: 50,
  labelChars: 255,
  /** Limit for client texts without their own limit. */
  textChars: 1_024,
  /** A longer release name of an agent is cut. */
  releaseChars: 100,
  eventPastMs: 30 * 24 * 60 * 60 * 1000,
  eventFutureMs: 5 * 60 * 1000,
  issueRecordBytes: 262_144,
  /** The last millisecond of year 9999, because years in ISO 8601 have four digits. */
  detectedAtMaxMs: 253_402_300_799_999,
  /** Sets of facts that one issue can hold after merges. */
  issueFingerprints: 50,
  /** Issues in one request for trends. */
  issueTrends: 50,
  /** For issues with at most this many agents, the list names them. */
  issueAgentsListed: 3,
  /** The list of an end user's issues examines this many runs, newest first. */
  issueUserRuns: 500,
  /** A search for issues examines this many, last seen first. */
  searchedIssues: 2_000,
  issueTrendDays: 14,
  /** Closed approvals on one page of hindsight. */
  hindsightPage: 25,
  /** Detections that are counted for each set of facts. */
  issueTrendRecords: 10_000,
  fingerprintChars: 100,
  commentChars: 10_000,
  assigneeChars: 200,
  runsPageDefault: 25,
  runsPageMax: 100,
  runDetailEvents: 100,
  eventsPageDefault: 100,
  eventsPageMax: 200,
  /** A page of events ends at this size, even below `limit`. It holds at least one event. */
  pageBytes: 4 * 1_048_576,
  scoreNameChars: 64,
  /** Length of a score's text value. */
  scoreCategoryChars: 64,
  /** A score's number is between minus this value and this value. */
  scoreNumberMax: 1_000_000_000,
  scoreAuthorChars: 120,
  /** A longer comment of a client is cut when shown; its event has the whole comment. */
  scoreCommentChars: 2_000,
  /** Scores, and names of scores, that are stored for one run. */
  scoresOfRun: 1_000,
  scoreNamesOfRun: 20,
  /** Names in the environment's list of scores. */
  scoreNames: 100,
  /** Sums of scores over time read at most this many pairs of run and name in the window, last scored first. */
  summedScores: 100_000,
  /** Sums of scores over time return at most this many groups of name and category, names with most runs first. */
  scoreSumRows: 2_000,
  /** Different categories of one name that sums count; further ones are left out. */
  scoreCategories: 20,
  /** Agreement is computed between this many authors, those with most scores first. */
  agreementAuthors: 20,
  /** Agreement lists this many steps and runs that two authors judge differently. */
  agreementDifferences: 50,
  /** Any other list page ends at this size, even below `limit`. It holds at least one item. */
  listBytes: 1_048_576,
  /** A token count of an LLM_CALL counts when it is an integer from 0 to this limit. */
  tokensPerCall: 1_000_000_000,
  /** The cost of an LLM_CALL counts when it is a number from 0 to this limit. */
  costPerCall: 1_000_000,
  /** Longest model name by which usage is summed up. */
  modelChars: 255,
  /** Largest price of a million tokens. */
  pricePerMillion: 1_000_000,
  /** Maximum number of prices of a workspace. */
  prices: 1_000,
  unpricedModels: 50,
  /** Alerts and budgets of an environment. */
  alerts: 50,
  alertWindowMinutes: 10_080,
  unpricedDays: 92,
  /** A longer latency of a call is not counted. */
  latencyMs: 86_400_000,
  approvalTimeoutMsMin: 1_000,
  approvalTimeoutMsMax: 24 * 60 * 60 * 1000,
  approvalTimeoutMsDefault: 5 * 60 * 1000,
  /** Body of a request for approval. It also limits the reason of an approval. */
  approvalBodyBytes: 65_536,
  inputHashDigitsMin: 32,
  inputHashDigitsMax: 128,
  /** Longest `wait` for a client's read of an approval. */
  approvalWaitSecondsMax: 30,
  /** Requests in one process that wait for a decision. Further ones are answered at once. */
  approvalWaits: 4_000,
  approvalWaitsOfWorkspace: 1_000,
  /** A client that has asked within this time still waits for the answer. */
  approvalWaitingMs: 30_000,
  unansweredHoursMax: 24 * 92,
  unansweredRequests: 10_000,
  /** Decisions that the proposal of a condition reads, newest first. */
  proposalDecisions: 10_000,
  proposalMs: 10_000,
  unansweredPolicies: 200,
  heldCallsCounted: 2_000,
  decisionReasonChars: 2_000,
  /** Characters of a recorded tool input that are shown with an approval. */
  inputPreviewChars: 65_536,
  inputInShortChars: 200,
  /** JSON Pointers of masked members that the check of an input names. */
  sealedShown: 50,
  sealedPointerChars: 200,
  /** Input fields, and words of the user, in the description of an approval. */
  inputFields: 40,
  inputFieldChars: 200,
  userTextChars: 600,
  /** Length of a policy's sentence template, and its number of fields. */
  policyTemplateChars: 200,
  policyTemplateFields: 10,
  /** Standing approvals that are in use in one environment. */
  grantsInUse: 200,
  grantUses: 20,
  grantUsesMax: 1_000,
  /** Lifetime of a grant by default, then its maximum in one run, and its maximum with a condition. */
  grantMinutes: 60,
  grantRunMinutesMax: 24 * 60,
  grantAgentMinutesMax: 7 * 24 * 60,
  /**
   * How long people are not notified of a request that a grant may approve, while its recorded input may still arrive.
   */
  grantHoldMs: 3_000,
  /** Approvals in one request that decides several. */
  decisionsMax: 200,
  /** People whom an approval lists as able to decide it. */
  decidersMax: 20,
  /** The newest versions of a prompt whose results are shown, and the newest runs of each that they sum up. */
  promptResultVersions: 20,
  promptResultRuns: 1_000,
  /** Points in one answer of usage over time: the window divided by the step. */
  usageSteps: 400,
  /** Usage by agent sums up the waiting times of this many runs and decided approvals, newest first. */
  usageWaits: 50_000,
  /** Parts of hours that one answer counts from their events. Beyond this, the oldest count as whole hours. */
  usagePartHours: 100,
  /** Events of such an hour. An hour with more counts as a whole. */
  usagePartEvents: 20_000,
  /** Runs from before the hour's end that are searched for events in it, newest first. */
  usagePartRuns: 10_000,
  zoneChars: 64,
  usagePointsPage: 2_000,
  /** Usage by prompt version sums up this many runs of the window, newest first. */
  usagePromptRuns: 100_000,
  /** Usage by session sums up this many runs of the window, newest first. */
  usageSessionRuns: 100_000,
  /** Usage by tag or metadata sums up this many runs of a window, newest first. */
  usageLabelRuns: 50_000,
  /** When usage is sorted by cost, costs are estimated for this many of its keys. */
  usageRankedKeys: 10_000,
  /** Completeness by client and agent sums up this many SDK instances of runs with gaps, newest runs first. */
  summedRecorders: 10_000,
  /** Content of a prompt, in UTF-8. */
  promptContentBytes: 262_144,
  /** Longer contents are checked against their checksum only when a version is read, not in lists. */
  promptListedBytes: 16_384,
  /** Large enough for content with many escaped characters. */
  promptBodyBytes: 2 * 1_048_576,
  policyIdChars: 100,
  descriptionChars: 2_000,
  noteChars: 2_000,
  /** Deployed items in one environment. Clients evaluate every policy before every tool call. */
  deployedPolicies: 500,
  deployedPrompts: 500,
  /** Prompts of one environment with a share, a second version for a part of the sessions. */
  promptShares: 20,
  deployedPromptBytes: 4 * 1_048_576,
  /** Stops in effect in one environment; each is one more policy that clients evaluate. */
  stops: 100,
  /** Stops of one environment that are listed, including ended ones. */
  keptStops: 1_000,
  /** With the operator's name, it fits in what clients show of a policy's message. */
  stopReasonChars: 300,
  /** Rules for tool labels in one environment. Few, because clients check all rules for each call. */
  toolLabelRules: 300,
  /** Different labels of outputs in all rules of an environment together, because clients track each. */
  toolLabelsOfOutputs: 14,
  toolLabelChars: 40,
  /** Prompts and policies in one publication. */
  deploymentItems: 1_000,
  /** Longest `wait` when a client loads the runtime configuration, and the wait that the service suggests. */
  configurationWaitSecondsMax: 30,
  configurationWaitSeconds: 25,
  /** Requests in one process that wait for a change of the configuration. Further ones are answered at once. */
  configurationWaits: 20_000,
  configurationWaitsOfWorkspace: 10_000,
  /**
   * Clients of the runtime configuration that are remembered in one environment. Beyond this, the oldest are dropped.
   */
  configurationClients: 1_000,
  /** Days from the request to delete an archived environment to its deletion. Until then, it can be restored. */
  environmentDeletionDays: 30,
  stalledMinutesMin: 5,
  stalledMinutesMax: 43_200,
  simulationDaysMax: 30,
  /** Recorded tool calls that one simulation examines, newest first. */
  simulationCalls: 1_000_000,
  /** Runs that a simulation reads if its condition needs the past of runs, newest first. */
  simulationRuns: 20_000,
  /** Bytes of payloads that one simulation reads. */
  simulationBytes: 2_147_483_648,
  /** Bytes of payloads that a simulation reads from one run. */
  simulationRunBytes: 67_108_864,
  /** Unfinished simulations in one environment. */
  simulationsWaiting: 4,
  /** Finished simulations that are kept in one environment, newest first. */
  simulationsKept: 100,
  operatorBodyBytes: 262_144,
  /** Lines in one request of an import. One line can have a payload with all characters escaped twice. */
  importedLines: 2_000,
  importBodyBytes: 4 * 1_048_576,
  /** Import requests that a process works on at the same time, one for each workspace. */
  importsAtOnce: 2,
  exportPlaceChars: 8_000,
  /** Exports that one process streams at the same time. */
  exportsAtOnce: 4,
  /** Exports for each workspace, so that slow readers of one do not block the others. */
  exportsOfWorkspaceAtOnce: 2,
  /** Minimum that the reader of an export must accept within the request timeout, if so much is waiting for it. */
  exportPaceBytes: 1_048_576,
  /** Files of single runs that one process writes at the same time, and of one workspace. */
  runFilesAtOnce: 16,
  runFilesOfWorkspaceAtOnce: 8,
  /** Events in the file of a run, the first ones by time. */
  runFileEvents: 10_000,
  /** Total size of payloads in the file of a run, from its first events on. */
  runFilePayloadBytes: 8 * 1_048_576,
  /** Approvals, and issues, in the file of a run. */
  runFileRows: 200,
  /** Size of a body without a credential: codes, passwords and addresses. */
  signInBodyBytes: 16_384,
  searchChars: 255,
  /** A search by run id prefix examines this many matching runs, the last ones in the order of their ids. */
  searchedRunIds: 1_000,
  /** A search by agent name examines this many agents of an environment, newest first. */
  searchedAgents: 1_000,
  /** A search for part of an agent's name examines this many agents of an environment, newest first. */
  searchedAgentNames: 10_000,
  /** Agents with the sought name whose runs a search finds, newest first. */
  searchedAgentsOfName: 20,
  /** A page of runs filtered by cost, length, errors or names ends after this many runs were examined. */
  runsLookedAt: 5_000,
  /** The order by cost estimates this many ended runs, those with the most tokens. */
  runsEstimated: 2_000,
  /** Tags, and keys of metadata, that one event may add to its run. */
  runTags: 50,
  runMetadataKeys: 50,
  /** This many calls of one tool with the same input are a loop. */
  loopCalls: 5,
  /** A loop is sought among this many latest tool calls of a run. */
  loopWindowCalls: 20,
  /** The filter for runs with approvals examines this many requests, newest first. */
  searchedApprovals: 5_000,
  /** A filtered page of a timeline ends after this many rows were examined. */
  eventsLookedAt: 5_000,
  problemsPageDefault: 100,
  problemsPageMax: 100,
  /** Bytes of payloads that are read for a page of a run's problems. */
  problemsPageBytes: 1_048_576,
  /** Pages of problems that a process reads at the same time, one for each workspace. */
  problemsAtOnce: 2,
  /** Searches over payloads that a process runs at the same time, one for each workspace. */
  searchesAtOnce: 2,
  /** Sums of scores that a process reads at the same time, one for each workspace. */
  scoreSumsAtOnce: 2,
  /**
   * Requests of one workspace that wait for each of these three in a process. One token or person may have half of
   * them.
   */
  turnsWaiting: 200,
  searchQueryChars: 1_000,
  /** Words in one query, including words of phrases and fields. */
  searchQueryWords: 32,
  searchPageDefault: 25,
  searchPageMax: 100,
  /** A page of search results ends after this many events were compared with the query. */
  searchedEvents: 500,
  searchedPayloadBytes: 4 * 1_048_576,
  /** Different words of one event that are indexed for the search. */
  searchedWords: 4_000,
  searchedDaysDefault: 30,
  searchedDaysMax: 400,
  searchRunsCounted: 10_000,
  operatorPageDefault: 100,
  operatorPageMax: 200,
  nameChars: 100,
  runViewNameChars: 80,
  /** Saved views of the list of runs in one environment. */
  runViews: 100,
  /** A saved view goes back at most this far: a year. */
  runViewHours: 8_784,
  /** Longest retention time: ten years. */
  retentionDays: 3_650,
  /** Minimum retention time of the audit log: a shorter time could hide a change. */
  retentionAuditDaysMin: 30,
  /** Retention keeps this many runs of each group of an open issue, newest first. */
  keptRunsOfIssue: 20,
  /** Retention keeps runs of this many open issues, last seen first. */
  issuesWithKeptRuns: 500,
  /** A preview of retention counts up to this many runs, issues, approvals and audit entries one by one. */
  retentionCounted: 10_000,
  /** Keys in the path to a payload field with a user id. */
  erasureFieldKeys: 10,
  erasureReasonChars: 500,
  /** A preview of an erasure counts at most this many runs. */
  erasurePreviewRuns: 10_000,
  webhookUrlChars: 2_000,
  /** Pending deliveries of one webhook. Beyond this, the oldest are dropped. */
  webhookPendingDeliveries: 1_000,
  slackSecretCharsMin: 16,
  slackSecretCharsMax: 128,
  /** Large, because a request of Slack quotes the message with the button. */
  slackBodyBytes: 524_288,
  /** Requests of Slack for one webhook per second. */
  slackRequestsPerSecond: 20,
  /** Slack users of one webhook who are linked to accounts, or have a valid code. */
  slackLinks: 1_000,
  /** Slack users of one webhook who can get a code within a minute. */
  slackCodesPerMinute: 30,
  /** How long a code that links a Slack user to an account is valid. */
  slackCodeMs: 10 * 60 * 1000,
  /** Links that are listed for one account. */
  slackLinksOfAccount: 1_000,
  /** Browsers in which one account can get notifications. */
  notifiedBrowsers: 10,
  /** Environments about which one account can be notified. */
  notifiedEnvironments: 100,
  /** Browsers that get the notification of one event, oldest accounts first. */
  browsersToldAtOnce: 1_000,
  pushEndpointChars: 1_000,
  /** A browser is removed if its person has not opened Tacho in it for this long. */
  notifiedBrowserMs: 60 * 24 * 60 * 60 * 1000,
  userAgentChars: 500,
  timeZoneChars: 64,
  auditFilterChars: 255,
  emailChars: 254,
  /** Groups of an identity provider that TACHO_GROUP_ROLES names. */
  mappedGroups: 1_000,
  /** Groups of one person that a sign-in reads. A person with more gets no role from groups. */
  groupsOfPerson: 1_000,
  /** Allowed addresses and networks of one API key or operator token. */
  allowedAddresses: 50,
  /** Size of a SCIM request. */
  directoryBodyBytes: 262_144,
  directoryOperations: 100,
  directoryMembers: 500,
  /** People or groups in a list for a directory; groups with their members are fewer. */
  directoryPage: 200,
  directoryGroupPage: 20,
  directoryTextChars: 255,
  directoryFilterChars: 1_000,
  passwordCharsMin: 12,
  passwordCharsMax: 256,
  /** Longest key or token in a request. */
  credentialChars: 255,
  codeChars: 64,
  /** How long an invitation is valid. */
  invitationMs: 7 * 24 * 60 * 60 * 1000,
  /** How long a session lasts, regardless of use. */
  sessionMs: 7 * 24 * 60 * 60 * 1000,
  requestsPerSecondDefault: 5_000,
  operatorRequestsPerSecondDefault: 500,
  requestsPerSecondMax: 1_000_000,
} as const
