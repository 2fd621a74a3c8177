/**
 * Calls that must compile, and calls that must not. The compiler is the test: `npm run check` fails if a line marked as an
 * error compiles, or another line does not.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Approval } from '@tacho/contract/approvals/approval.ts'
import type { RunPage } from '@tacho/contract/runs/run.ts'
import type { Issue } from '@tacho/contract/issues/issue.ts'
import { eachItem } from '../src/items.ts'
import type { OperatorClient } from '../src/operator.ts'
import type { PublicClient } from '../src/public.ts'
import { throwing } from '../src/throwing.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_isSame: Same<A, B>): void => undefined

const params = { environmentId: 'e', issueId: 'i' }

export async function publicCalls(client: PublicClient): Promise<void> {
  await client.listRuns()
  await client.listRuns({ query: { limit: 5, status: undefined } }, { timeoutMs: 10 })
  // @ts-expect-error the filter does not exist
  await client.listRuns({ query: { colour: 'red' } })
  // @ts-expect-error the status does not exist
  await client.listRuns({ query: { status: 'DONE' } })
  // @ts-expect-error the run is missing
  await client.readRun()
  // @ts-expect-error the run is missing
  await client.readRun({ params: {} })
  await client.readRun({ params: { runId: 'r' } })
  // @ts-expect-error this route has no query
  await client.readRun({ params: { runId: 'r' }, query: {} })
  const body = { clientRequestId: 'c', toolName: 't', inputHash: 'ab'.repeat(16) }
  // @ts-expect-error the client id is missing
  await client.createApproval({ body })
  const headers = { 'X-Service-Client-ID': 'c' }
  // @ts-expect-error the tool is missing
  await client.createApproval({ headers, body: { clientRequestId: 'c', inputHash: 'ab' } })
  const asked = await client.createApproval({ headers, body })
  // @ts-expect-error the call may have failed
  void asked.value
  if (asked.ok) {
    same<typeof asked.value, Approval>(true)
    same<typeof asked.status, 201>(true)
  } else if (asked.reason === 'refused') {
    same<typeof asked.problem.code, typeof asked.code>(true)
    if (asked.code === 'conflict') void asked.problem.current
    // @ts-expect-error the route looks nothing up, so it never answers not_found
    if (asked.code === 'not_found') return
  } else {
    same<typeof asked.code, null>(true)
  }
  const config = await client.loadRuntimeConfig({ headers: { 'If-None-Match': '"x"' } })
  if (config.ok && config.status === 304) same<typeof config.value, null>(true)
  if (config.ok && config.status === 200) void config.value.policies.length
  // @ts-expect-error only routes with an ETag accept the header
  await client.listRuns({ headers: { 'If-None-Match': '"x"' } })
  const runs = await client.listRuns()
  if (runs.ok) same<typeof runs.value, RunPage>(true)
  // @ts-expect-error a full disk never refuses reads
  if (!runs.ok && runs.code === 'storage_full') return
  // @ts-expect-error the call belongs to the operator API
  await client.listIssues({ params })
}

export async function operatorCalls(client: OperatorClient): Promise<void> {
  // @ts-expect-error browsers are redirected there; no client calls it
  void client.finishOidc
  const methods = await client.readSignInMethods()
  // @ts-expect-error the route needs no role
  if (!methods.ok && methods.code === 'forbidden') return
  const issue = await client.readIssue({ params })
  if (issue.ok) same<typeof issue.value, Issue>(true)
  await client.createWorkspace({ body: { name: 'w' }, headers: { 'Idempotency-Key': 'k' } })
  // @ts-expect-error the route creates nothing
  await client.resolveIssue({ params, headers: { 'Idempotency-Key': 'k' } })
  const backup = await client.createBackup()
  if (backup.ok) same<typeof backup.value, ReadableStream<Uint8Array>>(true)
  const stream = await client.streamApprovals({ params: { environmentId: 'e' } })
  if (!stream.ok) return
  for await (const message of stream.value) {
    if (message.event === 'changed') void message.data.items[0]?.status
    else if (message.event === 'snapshot') void message.data.more
    else same<typeof message.event, 'end'>(true)
    // @ts-expect-error the stream has no such message
    if (message.event === 'message') return
  }
  const sure = throwing(client)
  const page = await sure.listIssues({ params: { environmentId: 'e' } })
  void page.items[0]?.title
  for await (const found of eachItem(sure.listIssues, { params: { environmentId: 'e' }, query: { limit: 5 } })) {
    same<typeof found.state, 'OPEN' | 'RESOLVED' | 'IGNORED'>(true)
  }
  for await (const workspace of eachItem(sure.listWorkspaces, {})) void workspace.name
  // @ts-expect-error the environment is missing
  eachItem(sure.listIssues, { query: { limit: 5 } })
  // @ts-expect-error the route is not a list
  eachItem(sure.readIssue, { params })
}

test('the calls above compile or fail as marked', () => {
  // The compiler has checked everything before; the functions are never called.
  assert.equal(typeof publicCalls, typeof operatorCalls)
})
