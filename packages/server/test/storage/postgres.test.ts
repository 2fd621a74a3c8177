import { after, before } from 'node:test'
import { openPostgresStorage } from '../../src/storage/postgres/open.ts'
import { testDatabases, type TestDatabases } from '../postgres-server.ts'
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

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

const open: OpenStorage = async () => {
  const { url, drop } = await databases.create()
  const storage = await openPostgresStorage({ url })
  return {
    storage,
    async close() {
      await storage.close()
      await drop()
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
