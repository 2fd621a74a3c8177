/** The rules for every engine. */
import { after, describe } from 'node:test'
import { accessSuite } from './access.ts'
import { agentsSuite } from './agents.ts'
import { approvalNotesSuite } from './approval-notes.ts'
import { approvalListsSuite } from './approval-lists.ts'
import { approvalsSuite } from './approvals.ts'
import { completenessSuite } from './completeness.ts'
import { configurationClientsSuite } from './configuration-clients.ts'
import { configurationDamageSuite } from './configuration-damage.ts'
import { controlSuite } from './control.ts'
import { damageSuite } from './damage.ts'
import { directorySuite } from './directory.ts'
import { deploymentsSuite } from './deployments.ts'
import { envelopesSuite } from './envelopes.ts'
import { environmentDeletionSuite } from './environment-deletion.ts'
import { erasureLaterSuite } from './erasure-later.ts'
import { erasureMessagesSuite } from './erasure-messages.ts'
import { erasuresSuite } from './erasures.ts'
import { eventsSuite } from './events.ts'
import { exportsSuite } from './exports.ts'
import { failuresSuite } from './failures.ts'
import { idempotencySuite } from './idempotency.ts'
import { issueGroupingSuite } from './issue-grouping.ts'
import { issuePropertySuite } from './issue-property.ts'
import { issueRecordsSuite } from './issue-records.ts'
import { issuesSuite } from './issues.ts'
import { listBytesSuite } from './list-bytes.ts'
import { operatorsSuite } from './operators.ts'
import { packingAtOnce, packingSuite } from './packing.ts'
import { policiesSuite } from './policies.ts'
import { promptsSuite } from './prompts.ts'
import { propertySuite } from './property.ts'
import { recordedInputSuite } from './recorded-input.ts'
import { rejectionsSuite } from './rejections.ts'
import { resultsSuite } from './results.ts'
import { retentionSuite } from './retention.ts'
import { reviewSuite } from './review.ts'
import { runListsSuite } from './run-lists.ts'
import { runViewsSuite } from './run-views.ts'
import { runsSuite } from './runs.ts'
import { scoredRunsSuite } from './scored-runs.ts'
import { scoresSuite } from './scores.ts'
import { searchSuite } from './search.ts'
import { simulationsSuite } from './simulations.ts'
import { notificationsSuite } from './notifications.ts'
import { slackLinksSuite } from './slack-links.ts'
import { stalledSuite } from './stalled.ts'
import { timelineSuite } from './timeline.ts'
import { usageSuite } from './usage.ts'
import { webhooksSuite } from './webhooks.ts'
import { workSuite } from './work.ts'
import { closeShared, type OpenStorage } from './open.ts'

const SUITES = [
  controlSuite,
  accessSuite,
  operatorsSuite,
  envelopesSuite,
  environmentDeletionSuite,
  erasuresSuite,
  erasureLaterSuite,
  erasureMessagesSuite,
  eventsSuite,
  exportsSuite,
  packingSuite,
  damageSuite,
  configurationDamageSuite,
  runsSuite,
  runListsSuite,
  completenessSuite,
  runViewsSuite,
  retentionSuite,
  scoresSuite,
  scoredRunsSuite,
  searchSuite,
  agentsSuite,
  timelineSuite,
  usageSuite,
  resultsSuite,
  rejectionsSuite,
  promptsSuite,
  policiesSuite,
  deploymentsSuite,
  directorySuite,
  configurationClientsSuite,
  simulationsSuite,
  stalledSuite,
  approvalsSuite,
  approvalListsSuite,
  approvalNotesSuite,
  recordedInputSuite,
  propertySuite,
  workSuite,
  issueRecordsSuite,
  failuresSuite,
  issuesSuite,
  issueGroupingSuite,
  issuePropertySuite,
  reviewSuite,
  webhooksSuite,
  slackLinksSuite,
  notificationsSuite,
  listBytesSuite,
  idempotencySuite,
]

/** Those that read payloads. */
const READING = [eventsSuite, timelineSuite, simulationsSuite, approvalListsSuite, recordedInputSuite]

/** Runs every suite on stores that `open` opens, and those that read payloads also with every payload in a block. */
export function conformanceSuite(open: OpenStorage): void {
  describe('the store', () => {
    after(() => closeShared(open))
    for (const suite of SUITES) suite(open)
  })
  describe('the store with every payload in a block', () => {
    const packing = packingAtOnce(open)
    after(() => closeShared(packing))
    for (const suite of READING) suite(packing)
  })
}
