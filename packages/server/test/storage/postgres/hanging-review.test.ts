import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { reviewIssueRecords } from '../../../src/jobs/issues/find-failures.ts'
import { createWorkRunner } from '../../../src/jobs/engine/work.ts'
import { NO_TRIGGERS } from '../../setup/citus-skips.ts'
import { eventually } from '../../setup/eventually.ts'
import { issueRecord } from '../suite/issues/issue-sample.ts'
import { newId } from '../suite/sample.ts'
import { useTestDatabase } from './store-trouble.ts'

const { query, withStorage } = useTestDatabase()

/** Makes the review of one record hang. */
async function hangReview(id: string): Promise<void> {
  await query(`CREATE FUNCTION tacho.hang() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$`)
  await query(`CREATE TRIGGER hang BEFORE UPDATE ON tacho.issue_records FOR EACH ROW
    WHEN (NEW.id = '${id}' AND NEW.status = 'EVALUATING') EXECUTE FUNCTION tacho.hang()`)
}

test(
  'a record whose review always times out ends FAILED; its neighbours are decided',
  { skip: NO_TRIGGERS },
  async () => {
    await withStorage({ timeouts: { statementMs: 500 } }, async (storage) => {
      const env = newId()
      const records = Array.from({ length: 3 }, () => issueRecord(env))
      for (const record of records) await storage.receiveIssueRecord(record)
      await hangReview(records[0]?.id ?? '')
      const runner = createWorkRunner({
        storage,
        handlers: [reviewIssueRecords({ storage, now: Date.now, random: randomBytes })],
        owner: newId(),
        now: Date.now,
        onError: () => undefined,
        pollMs: 5,
        maxAttempts: 3,
        firstDelayMs: 1,
      })
      runner.start()
      const statuses = () =>
        Promise.all(records.map(async ({ id }) => (await storage.findIssueRecord(env, id))?.status ?? ''))
      const isEnded = (status: string) => status === 'DECIDED' || status === 'FAILED'
      await eventually(async () => (await statuses()).every(isEnded), 'every review to end')
      await runner.stop()
      assert.deepEqual(await statuses(), ['FAILED', 'DECIDED', 'DECIDED'])
    })
  },
)
