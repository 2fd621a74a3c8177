/**
 * Every limit of the interface, with its unit in the name. The source is the section "Limits" of the interface;
 * docs/decisions covers what it leaves open.
 */
export const LIMITS = {
  batchEvents: 100,
  /** Requests of one connection that are not answered, or whose answers are not read. One more closes it. */
  pipelinedRequests: 32,
  /** Bytes that a connection may send behind a request that waits, before reading stops. */
  pipelinedBytes: 16_384,
  idleConnections: 5_000,
  /** Messages to /mcp of one token; four run at a time. */
  mcpMessagesWaiting: 100,
  /** Warnings about accepted events in one reply. */
  batchWarnings: 100,
  batchBytes: 1_048_576,
  /** An OTLP request after decompression. */
  otlpBytes: 20 * 1_048_576,
  /** Spans or log records of an OTLP request. */
  otlpItems: 10_000,
  /** Attributes, values, events and links of an OTLP request: two bytes can be one, and each becomes several objects. */
  otlpValues: 500_000,
  /** Values and names of members of any other JSON body, which the process parses between two requests of others. */
  bodyValues: 50_000,
  /** Payloads that one OTLP request can become: a small body can repeat its resource in every span. */
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
  /** A longer release of an agent is cut. */
  releaseChars: 100,
  eventPastMs: 30 * 24 * 60 * 60 * 1000,
  eventFutureMs: 5 * 60 * 1000,
  issueRecordBytes: 262_144,
  /** The last millisecond of year 9999: ISO 8601 years have four digits. */
  detectedAtMaxMs: 253_402_300_799_999,
  /** Sets of facts that one issue can hold after merges. */
  issueFingerprints: 50,
  /** Issues in one request for trends. */
  issueTrends: 50,
  /** The list names the agents of issues that have at most this many. */
  issueAgentsListed: 3,
  /** The list of issues of an end user looks at this many runs, newest first. */
  issueUserRuns: 500,
  /** A search for issues examines this many, those last seen first. */
  searchedIssues: 2_000,
  issueTrendDays: 14,
  /** Closed approvals on one page of hindsight. */
  hindsightPage: 25,
  /** Detections counted for a set of facts. */
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
  /** A score's value that is a text. */
  scoreCategoryChars: 64,
  /** A score's number is between minus this and this. */
  scoreNumberMax: 1_000_000_000,
  scoreAuthorChars: 120,
  /** A longer comment of a client is cut when shown; its event has the whole text. */
  scoreCommentChars: 2_000,
  /** Scores and names of scores that are kept of one run. */
  scoresOfRun: 1_000,
  scoreNamesOfRun: 20,
  /** Names of scores that the environment's list has. */
  scoreNames: 100,
  /** Sums of scores over time read at most this many pairs of run and name in the window, the latest scored. */
  summedScores: 100_000,
  /** Sums of scores over time return at most this many groups of name and category; names with most runs come first. */
  scoreSumRows: 2_000,
  /** Different texts of one name that sums count; those after them are left out. */
  scoreCategories: 20,
  /** Agreement is computed between so many authors, those with most scores, */
  agreementAuthors: 20,
  /** and lists so many steps and runs of which two judge differently. */
  agreementDifferences: 50,
  /** Any other page ends at this size, even below `limit`. It holds at least one item. */
  listBytes: 1_048_576,
  /** A token count of an LLM_CALL counts when it is an integer from 0 to this limit. */
  tokensPerCall: 1_000_000_000,
  /** The cost of an LLM_CALL counts when it is a number from 0 to this limit. */
  costPerCall: 1_000_000,
  /** Longest name of a model that usage is summed up by. */
  modelChars: 255,
  /** Largest price of a million tokens. */
  pricePerMillion: 1_000_000,
  /** Most prices of a workspace. */
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
  /** Also limits an approval's reason. */
  approvalBodyBytes: 65_536,
  inputHashDigitsMin: 32,
  inputHashDigitsMax: 128,
  /** Longest `wait` when a client reads an approval. */
  approvalWaitSecondsMax: 30,
  /** Requests of a process that wait for a decision. Beyond these, they are answered at once. */
  approvalWaits: 4_000,
  approvalWaitsOfWorkspace: 1_000,
  /** A client that asked for the answer within this time waits for it. */
  approvalWaitingMs: 30_000,
  unansweredHoursMax: 24 * 92,
  unansweredRequests: 10_000,
  /** Decisions that a proposal of a condition reads, the newest first. */
  proposalDecisions: 10_000,
  proposalMs: 10_000,
  unansweredPolicies: 200,
  heldCallsCounted: 2_000,
  decisionReasonChars: 2_000,
  /** Characters of a recorded tool input to show with an approval. */
  inputPreviewChars: 65_536,
  inputInShortChars: 200,
  /** JSON Pointers of masked members that a check names. */
  sealedShown: 50,
  sealedPointerChars: 200,
  /** Input fields and user's words in the description of an approval. */
  inputFields: 40,
  inputFieldChars: 200,
  userTextChars: 600,
  /** Template of the sentence of a policy's requests, and what is put into it. */
  policyTemplateChars: 200,
  policyTemplateFields: 10,
  /** Standing approvals in use in an environment. */
  grantsInUse: 200,
  grantUses: 20,
  grantUsesMax: 1_000,
  /** Default; then the most of a grant in one run, and of one with a condition. */
  grantMinutes: 60,
  grantRunMinutesMax: 24 * 60,
  grantAgentMinutesMax: 7 * 24 * 60,
  /** Wait for the recorded input of a request that a grant may approve, before people are notified. */
  grantHoldMs: 3_000,
  /** Approvals in one request of decisions. */
  decisionsMax: 200,
  /** People who can decide an approval, as it names them. */
  decidersMax: 20,
  /** The newest versions of a prompt whose results are shown, and the newest runs of each that they sum up. */
  promptResultVersions: 20,
  promptResultRuns: 1_000,
  /** Points of one call of usage over time: the window divided by the step. */
  usageSteps: 400,
  /** Runs, and decided approvals, whose waiting times usage by agent sums up, newest first. */
  usageWaits: 50_000,
  /** Parts of hours that one answer counts from their events; the oldest ones beyond this count as whole hours. */
  usagePartHours: 100,
  /** Events of such an hour; with more, it counts as a whole. */
  usagePartEvents: 20_000,
  /** How many runs that began before its end may have events in it, the newest first. */
  usagePartRuns: 10_000,
  zoneChars: 64,
  usagePointsPage: 2_000,
  /** Usage by prompt version sums up this many runs of the window, newest first. */
  usagePromptRuns: 100_000,
  /** Usage by session sums up this many runs of the window, newest first. */
  usageSessionRuns: 100_000,
  /** Usage by tag or metadata sums up this many runs of a window, newest first. */
  usageLabelRuns: 50_000,
  /** The order by cost sums up what this many keys cost, with estimates. */
  usageRankedKeys: 10_000,
  /** Completeness by client and agent sums up this many SDK instances of runs with gaps, newest runs first. */
  summedRecorders: 10_000,
  /** Content of a prompt, in UTF-8. */
  promptContentBytes: 262_144,
  /** Longer contents are compared with their checksum when a version is read, and not in lists. */
  promptListedBytes: 16_384,
  /** Leaves room for content with many escaped characters. */
  promptBodyBytes: 2 * 1_048_576,
  policyIdChars: 100,
  descriptionChars: 2_000,
  noteChars: 2_000,
  /** Deployed items in one environment. Clients evaluate every policy before every tool call. */
  deployedPolicies: 500,
  deployedPrompts: 500,
  /** Prompts of an environment with a second version for a part of the sessions. */
  promptShares: 20,
  deployedPromptBytes: 4 * 1_048_576,
  /** Stops in effect in one environment; each is one more policy that clients evaluate. */
  stops: 100,
  /** Stops of an environment that are listed, with those that have ended. */
  keptStops: 1_000,
  /** With the operator's name, within what clients show of a policy's message. */
  stopReasonChars: 300,
  /** Labels of tools of an environment: clients look at all rules in each call. */
  toolLabelRules: 300,
  /** Labels of outputs that a client distinguishes, in all rules together. */
  toolLabelsOfOutputs: 14,
  toolLabelChars: 40,
  /** Prompts and policies in one publication. */
  deploymentItems: 1_000,
  /** Longest `wait` when a client loads the runtime configuration, and the one that the service offers. */
  configurationWaitSecondsMax: 30,
  configurationWaitSeconds: 25,
  /** Requests of a process that wait for a change of the configuration. Beyond these, they are answered at once. */
  configurationWaits: 20_000,
  configurationWaitsOfWorkspace: 10_000,
  /** Clients of the runtime configuration that are known in one environment. Beyond this, the oldest are dropped. */
  configurationClients: 1_000,
  /** From the request to delete an archived environment to its deletion, so that it can be restored. */
  environmentDeletionDays: 30,
  stalledMinutesMin: 5,
  stalledMinutesMax: 43_200,
  simulationDaysMax: 30,
  /** Recorded tool calls that one simulation examines, newest first. */
  simulationCalls: 1_000_000,
  /** Runs that one simulation with the past of runs reads, newest first. */
  simulationRuns: 20_000,
  /** Bytes of payloads that a simulation reads. */
  simulationBytes: 2_147_483_648,
  /** Bytes of payloads that a simulation reads of one run. */
  simulationRunBytes: 67_108_864,
  /** Unfinished simulations in one environment. */
  simulationsWaiting: 4,
  /** Finished simulations to keep in one environment, newest first. */
  simulationsKept: 100,
  operatorBodyBytes: 262_144,
  /** Lines in one request to import an export. One line can have a payload with all characters escaped twice. */
  importedLines: 2_000,
  importBodyBytes: 4 * 1_048_576,
  /** Requests of imports that a process works on at the same time, one of each workspace. */
  importsAtOnce: 2,
  exportPlaceChars: 8_000,
  /** Exports that one process streams at the same time. */
  exportsAtOnce: 4,
  /** Per workspace, so that one workspace's slow readers do not block the others. */
  exportsOfWorkspaceAtOnce: 2,
  /** A reader of an export must take at least this much of what waits for it within the request timeout. */
  exportPaceBytes: 1_048_576,
  /** Files of single runs that one process writes at the same time, and of one workspace. */
  runFilesAtOnce: 16,
  runFilesOfWorkspaceAtOnce: 8,
  /** Events of a run in its file, the first ones by time. */
  runFileEvents: 10_000,
  /** Payloads in the file of a run, from its first events on, up to this size. */
  runFilePayloadBytes: 8 * 1_048_576,
  /** Approvals in the file of a run, and issues. */
  runFileRows: 200,
  /** Bodies of requests without a credential: codes, passwords and addresses. */
  signInBodyBytes: 16_384,
  searchChars: 255,
  /** A search by run id prefix examines this many matching runs: the last ones in the order of their ids. */
  searchedRunIds: 1_000,
  /** A search by agent name examines this many agents of an environment, newest first. */
  searchedAgents: 1_000,
  /** A search for agents by a part of their name examines this many of an environment, newest first. */
  searchedAgentNames: 10_000,
  /** Agents with the same name whose runs a search finds, newest first. */
  searchedAgentsOfName: 20,
  /** A page of runs filtered by cost, length, errors or names ends after this many runs were examined. */
  runsLookedAt: 5_000,
  /** The order by cost takes the estimates of this many ended runs: those with the most tokens. */
  runsEstimated: 2_000,
  /** Tags that one event adds to its run, and keys of metadata. */
  runTags: 50,
  runMetadataKeys: 50,
  /** This many calls of one tool with the same input are a loop. */
  loopCalls: 5,
  /** Latest tool calls of a run among which a loop is looked for. */
  loopWindowCalls: 20,
  /** The filter for runs with approvals examines this many requests, newest first. */
  searchedApprovals: 5_000,
  /** A filtered page of a timeline ends after this many rows were examined. */
  eventsLookedAt: 5_000,
  problemsPageDefault: 100,
  problemsPageMax: 100,
  /** Payloads that are read for a page of a run's problems. */
  problemsPageBytes: 1_048_576,
  /** Pages of problems that a process reads at the same time, one for each workspace. */
  problemsAtOnce: 2,
  /** Searches over payloads that a process runs at the same time, one of each workspace. */
  searchesAtOnce: 2,
  /** Sums of scores that a process reads at the same time, one for each workspace. */
  scoreSumsAtOnce: 2,
  /** Requests of one workspace that wait for each of these three in a process, half of them of one token or person. */
  turnsWaiting: 200,
  searchQueryChars: 1_000,
  /** Words in one query, including words of phrases and fields. */
  searchQueryWords: 32,
  searchPageDefault: 25,
  searchPageMax: 100,
  /** A page of search results ends after this many events were compared with the query. */
  searchedEvents: 500,
  searchedPayloadBytes: 4 * 1_048_576,
  /** Different words of one event that the search finds. */
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
  /** Longest time that retention keeps something: ten years. */
  retentionDays: 3_650,
  /** The audit log is kept at least this long, so a change cannot be hidden by shortening its time. */
  retentionAuditDaysMin: 30,
  /** Retention keeps this many runs of each group of an open issue, the newest. */
  keptRunsOfIssue: 20,
  /** Retention keeps runs of this many open issues, those that were seen last. */
  issuesWithKeptRuns: 500,
  /** A preview of retention counts up to this many runs, issues, approvals and audit entries one by one. */
  retentionCounted: 10_000,
  /** Keys on the way to a payload field with a user id. */
  erasureFieldKeys: 10,
  erasureReasonChars: 500,
  /** A preview of an erasure counts at most this many runs. */
  erasurePreviewRuns: 10_000,
  webhookUrlChars: 2_000,
  /** Pending deliveries of one webhook. Beyond this, the oldest are dropped. */
  webhookPendingDeliveries: 1_000,
  slackSecretCharsMin: 16,
  slackSecretCharsMax: 128,
  /** A request of Slack quotes the message with the button. */
  slackBodyBytes: 524_288,
  /** Requests of Slack for one webhook. */
  slackRequestsPerSecond: 20,
  /** Slack users of one webhook who are linked to accounts, or have a valid code for it. */
  slackLinks: 1_000,
  /** Slack users of one webhook who get a code within a minute. */
  slackCodesPerMinute: 30,
  /** How long a code that links a Slack user to an account is valid. */
  slackCodeMs: 10 * 60 * 1000,
  /** Links of one account that it lists. */
  slackLinksOfAccount: 1_000,
  /** Browsers of one account that show notifications. */
  notifiedBrowsers: 10,
  /** Environments that one account can choose to be notified about. */
  notifiedEnvironments: 100,
  /** Browsers that get a notification of one event, those of the oldest accounts first. */
  browsersToldAtOnce: 1_000,
  pushEndpointChars: 1_000,
  /** A browser in which its person did not open Tacho for this long is removed. */
  notifiedBrowserMs: 60 * 24 * 60 * 60 * 1000,
  userAgentChars: 500,
  timeZoneChars: 64,
  auditFilterChars: 255,
  emailChars: 254,
  /** Groups of an identity provider that TACHO_GROUP_ROLES names. */
  mappedGroups: 1_000,
  /** Groups of one person that a sign-in reads. With more, groups give no role. */
  groupsOfPerson: 1_000,
  /** Addresses and networks of one API key or operator token. */
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
