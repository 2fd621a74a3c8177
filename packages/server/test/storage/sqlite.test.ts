import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openSqliteStorage } from '../../src/storage/sqlite/open.ts'
import { accessSuite } from './suite/access.ts'
import { agentsSuite } from './suite/agents.ts'
import { approvalListsSuite } from './suite/approval-lists.ts'
import { approvalsSuite } from './suite/approvals.ts'
import { controlSuite } from './suite/control.ts'
import { deploymentsSuite } from './suite/deployments.ts'
import { eventsSuite } from './suite/events.ts'
import { issueGroupingSuite } from './suite/issue-grouping.ts'
import { issuePropertySuite } from './suite/issue-property.ts'
import { issueRecordsSuite } from './suite/issue-records.ts'
import { issuesSuite } from './suite/issues.ts'
import type { OpenStorage } from './suite/open.ts'
import { policiesSuite } from './suite/policies.ts'
import { promptsSuite } from './suite/prompts.ts'
import { propertySuite } from './suite/property.ts'
import { rejectionsSuite } from './suite/rejections.ts'
import { reviewSuite } from './suite/review.ts'
import { runsSuite } from './suite/runs.ts'
import { simulationsSuite } from './suite/simulations.ts'
import { timelineSuite } from './suite/timeline.ts'
import { usageSuite } from './suite/usage.ts'
import { workSuite } from './suite/work.ts'

const open: OpenStorage = async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'tacho-suite-'))
  const onTrouble = (error: Error) => {
    throw error
  }
  const storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble })
  return {
    storage,
    async close() {
      await storage.close()
      await rm(directory, { recursive: true })
    },
  }
}

for (const suite of [
  controlSuite,
  accessSuite,
  eventsSuite,
  runsSuite,
  agentsSuite,
  timelineSuite,
  usageSuite,
  rejectionsSuite,
  promptsSuite,
  policiesSuite,
  deploymentsSuite,
  simulationsSuite,
  approvalsSuite,
  approvalListsSuite,
  propertySuite,
  workSuite,
  issueRecordsSuite,
  issuesSuite,
  issueGroupingSuite,
  issuePropertySuite,
  reviewSuite,
]) {
  suite(open)
}
