/** How many statements an act runs. Acts hold locks, so others wait for every round trip. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Decided } from '../../../../src/storage/approvals/approvals.ts'
import type { Intent, Published } from '../../../../src/storage/policies/deployments.ts'
import type { ScoreRow } from '../../../../src/storage/runs/scores.ts'
import { runAct, type ActName } from '../../../../src/storage/sql/acts.ts'
import { insertRows } from '../../../../src/storage/sql/engine/rows.ts'
import type { Sql } from '../../../../src/storage/sql/engine/sql.ts'
import { decision, request } from '../approvals/approval-sample.ts'
import { auditEntry, policyVersion, promptVersion } from '../policies/configuration-sample.ts'
import { newId, NOON } from '../sample.ts'
import { operatorScore } from '../runs/scores.ts'
import { WEBHOOK_EVENTS } from '@tacho/contract/engine/words.ts'

/** `sql` is the adapter of an engine on an empty store. */
export function statementsSuite(sql: () => Sql) {
  async function act<Result>(
    name: ActName,
    ...args: unknown[]
  ): Promise<{ result: Result; statements: number; chars: number }> {
    const real = sql()
    let [statements, chars] = [0, 0]
    const counted = <Run extends (...args: never[]) => unknown>(run: Run) =>
      (async (...given: never[]) => {
        statements++
        const result = await run(...given)
        chars += JSON.stringify(result).length
        return result
      }) as unknown as Run
    const counting = {
      ...real,
      all: counted(real.all),
      get: counted(real.get),
      run: counted(real.run),
      page: counted(real.page),
    } as Sql
    const result = (await runAct(counting, name, args)) as Result
    return { result, statements, chars }
  }

  async function newHome() {
    const [workspaceId, one, two] = [newId(), newId(), newId()]
    await act('createWorkspace', { id: workspaceId, name: newId(), createdAt: NOON }, [])
    for (const id of [one, two]) await act('createEnvironment', { id, workspaceId, name: id, createdAt: NOON }, [])
    return { workspaceId, one, two }
  }

  async function newWebhook(environmentId: string) {
    const unused = { previousSecret: null, previousUntil: null, disabledAt: null, disabledReason: null }
    const row = { id: newId(), environmentId, url: 'https://example.com', description: '', format: 'standard' }
    const rest = {
      events: [...WEBHOOK_EVENTS],
      secret: 'whsec_AAAA',
      showsInput: false,
      createdAt: NOON,
      droppedDeliveries: 0,
    }
    await act('createWebhook', { ...row, ...rest, ...unused }, [])
  }

  test('deciding two hundred approvals with two webhooks takes fewer than fifty statements, and so does their expiry', async () => {
    const { workspaceId, one: env } = await newHome()
    for (let count = 0; count < 2; count++) await newWebhook(env)
    const ids: string[] = []
    for (let count = 0; count < 400; count++) {
      const asked = request(env, { policyId: 'refunds', policyVersion: '1' })
      ids.push(asked.id)
      await act('createApproval', asked, { otherTools: [] })
    }
    const now = ids.slice(0, 200)
    const audit = now.map((targetId) => ({ ...auditEntry(workspaceId), targetId }))
    const decided = await act<Decided[]>('decideApprovals', env, now, decision({ otherTools: [] }), audit)
    assert.deepEqual(
      decided.result.map(({ outcome }) => outcome),
      Array(200).fill('decided'),
    )
    assert.ok(decided.statements < 50, String(decided.statements))
    const expired = await act<number>('expireApprovals', env, NOON * 2, 200)
    assert.equal(expired.result, 200)
    assert.ok(expired.statements < 50, String(expired.statements))
  })

  test('publishing, promoting and rolling back a thousand items takes fewer than two hundred statements each', async () => {
    const { workspaceId, one, two } = await newHome()
    const items = Array.from({ length: 1_000 }, (_, index) => {
      return index % 2 === 0
        ? { kind: 'policy' as const, id: `policy-${index}` }
        : { kind: 'prompt' as const, id: newId() }
    })
    for (const { kind, id } of items) {
      if (kind === 'policy') {
        await act('createPolicy', { id, workspaceId, createdAt: NOON }, policyVersion(), [])
        await act('createPolicyVersion', workspaceId, id, policyVersion({ name: 'Second' }), null, [])
      } else {
        await act('createPrompt', { id, workspaceId, name: id, createdAt: NOON }, promptVersion('First'), [])
        await act('createPromptVersion', workspaceId, id, promptVersion('Second'), null, [])
      }
    }
    const publish = async (environmentId: string, intent: Intent) => {
      const publication = { environmentId, intent, note: null, by: 'ada', now: NOON }
      const { result, statements } = await act<Published>('publish', publication, [auditEntry(workspaceId)])
      assert.equal(result.outcome === 'published' && result.changes.length, 1_000)
      assert.ok(statements < 200, `${intent.action}: ${statements}`)
    }
    for (const version of [1, 2]) {
      await publish(one, { action: 'DEPLOY', items: items.map((item) => ({ ...item, version })) })
    }
    await publish(two, { action: 'PROMOTE', sourceEnvironmentId: one, items: null })
    await publish(one, { action: 'ROLL_BACK', items })
    await publish(one, { action: 'DEPLOY', items: items.map((item) => ({ ...item, version: null })) })
  })

  test('a score is given and withdrawn without reading scores of other names, or comments', async () => {
    const { one: env } = await newHome()
    const run = newId()
    const none = { differing_retries: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost_nanos: 0 }
    const times = { started_at: NOON, last_event_at: NOON, received_at: NOON }
    const given = { run_id: 'run', agent_id: newId(), status: 'RUNNING', event_count: 1, error_count: 0, traits: '' }
    const own = { environment_id: env, id: run, number: 1, ...(sql().dialect === 'postgres' && { last_seq: 1 }) }
    await insertRows(sql(), 'runs', [{ ...own, ...none, ...times, ...given }])
    const comment = 'c'.repeat(LIMITS.scoreCommentChars)
    const score = (n: number) => operatorScore(run, `name ${n % 10}`, n, { authorId: `author ${n}`, comment })
    for (let n = 0; n < 100; n++) await act('giveScore', env, score(n), [])
    const { id } = score(100)
    for (const { result, statements, chars } of [
      await act('giveScore', env, score(100), []),
      await act<ScoreRow>('withdrawScore', env, run, id, null, []),
    ]) {
      assert.ok(result === 'given' || (result as ScoreRow).id === id)
      assert.ok(statements < 10 && chars < 3 * comment.length, `${statements} statements, ${chars} characters`)
    }
  })

  test('counting the requests of two hundred agents takes a few statements', async () => {
    const { one: env } = await newHome()
    await act('createApproval', request(env, { agentId: 'agent 7' }))
    const requesters = Array.from({ length: 200 }, (_, index) => ({ agentId: `agent ${index}`, clientId: 'client' }))
    const { result, statements } = await act<number[]>('countRequests', env, requesters, 0, 100)
    assert.deepEqual(
      result.flatMap((count, index) => (count > 0 ? [[index, count]] : [])),
      [[7, 1]],
    )
    assert.ok(statements <= 4, String(statements))
  })
}
