/** The rules for every engine. */
import { after, describe } from 'node:test'
import { accessSuite } from './people/access.ts'
import { agentsSuite } from './runs/agents.ts'
import { approvalNotesSuite } from './approvals/approval-notes.ts'
import { approvalListsSuite } from './approvals/approval-lists.ts'
import { approvalsSuite } from './approvals/approvals.ts'
import { completenessSuite } from './record/completeness.ts'
import { configurationClientsSuite } from './policies/configuration-clients.ts'
import { configurationDamageSuite } from './policies/configuration-damage.ts'
import { controlSuite } from './tenants/control.ts'
import { damageSuite } from './record/damage.ts'
import { directorySuite } from './people/directory.ts'
import { deploymentsSuite } from './policies/deployments.ts'
import { envelopesSuite } from './record/envelopes.ts'
import { environmentDeletionSuite } from './data/environment-deletion.ts'
import { erasureLaterSuite } from './data/erasure-later.ts'
import { erasureMessagesSuite } from './data/erasure-messages.ts'
import { erasuresSuite } from './data/erasures.ts'
import { eventsSuite } from './record/events.ts'
import { exportsSuite } from './data/exports.ts'
import { failuresSuite } from './issues/failures.ts'
import { idempotencySuite } from './engine/idempotency.ts'
import { issueGroupingSuite } from './issues/issue-grouping.ts'
import { issuePropertySuite } from './issues/issue-property.ts'
import { issueRecordsSuite } from './issues/issue-records.ts'
import { issuesSuite } from './issues/issues.ts'
import { listBytesSuite } from './engine/list-bytes.ts'
import { operatorsSuite } from './people/operators.ts'
import { packingAtOnce, packingSuite } from './data/packing.ts'
import { policiesSuite } from './policies/policies.ts'
import { promptsSuite } from './policies/prompts.ts'
import { overtakenSuite } from './policies/overtaken.ts'
import { sharesSuite } from './policies/shares.ts'
import { propertySuite } from './record/property.ts'
import { recordedInputSuite } from './approvals/recorded-input.ts'
import { rejectionsSuite } from './record/rejections.ts'
import { resultsSuite } from './policies/results.ts'
import { retentionSuite } from './data/retention.ts'
import { reviewSuite } from './issues/review.ts'
import { runListsSuite } from './runs/run-lists.ts'
import { runViewsSuite } from './runs/run-views.ts'
import { runsSuite } from './runs/runs.ts'
import { scoredRunsSuite } from './runs/scored-runs.ts'
import { scoresSuite } from './runs/scores.ts'
import { searchSuite } from './runs/search.ts'
import { simulationsSuite } from './policies/simulations.ts'
import { stopsSuite } from './policies/stops.ts'
import { notificationsSuite } from './messages/notifications.ts'
import { slackLinksSuite } from './messages/slack-links.ts'
import { stalledSuite } from './runs/stalled-rule.ts'
import { timelineSuite } from './record/timeline.ts'
import { usageSuite } from './runs/usage.ts'
import { partHoursSuite } from './runs/part-hours.ts'
import { webhooksSuite } from './messages/webhooks.ts'
import { workSuite } from './engine/work.ts'
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
  partHoursSuite,
  resultsSuite,
  rejectionsSuite,
  promptsSuite,
  policiesSuite,
  deploymentsSuite,
  overtakenSuite,
  sharesSuite,
  directorySuite,
  configurationClientsSuite,
  simulationsSuite,
  stopsSuite,
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

/** Suites that read payloads. */
const READING = [eventsSuite, timelineSuite, simulationsSuite, approvalListsSuite, recordedInputSuite]

/** Runs every suite on stores that `open` opens. Suites that read payloads also run with every payload in a block. */
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
