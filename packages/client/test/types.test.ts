/**
 * What must not compile, and what must. The compiler is the test: `npm run check` fails when a line below that must be
 * refused is not, or the other way round.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Approval } from '@tacho/contract/approval.ts'
import type { RunPage } from '@tacho/contract/run.ts'
import type { Issue } from '@tacho/contract/operator/issue.ts'
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
  // @ts-expect-error a filter that there is not
  await client.listRuns({ query: { colour: 'red' } })
  // @ts-expect-error a status that there is not
  await client.listRuns({ query: { status: 'DONE' } })
  // @ts-expect-error the run is missing
  await client.readRun()
  // @ts-expect-error the run is missing
  await client.readRun({ params: {} })
  await client.readRun({ params: { runId: 'r' } })
  // @ts-expect-error this route has no query
  await client.readRun({ params: { runId: 'r' }, query: {} })
  const body = { clientRequestId: 'c', toolName: 't', inputHash: 'ab'.repeat(16) }
  // @ts-expect-error the client must say who it is
  await client.createApproval({ body })
  const headers = { 'X-Service-Client-ID': 'c' }
  // @ts-expect-error the tool is missing
  await client.createApproval({ headers, body: { clientRequestId: 'c', inputHash: 'ab' } })
  const asked = await client.createApproval({ headers, body })
  // @ts-expect-error it may have failed
  void asked.value
  if (asked.ok) {
    same<typeof asked.value, Approval>(true)
    same<typeof asked.status, 201>(true)
  } else if (asked.reason === 'refused') {
    same<typeof asked.problem.code, typeof asked.code>(true)
    if (asked.code === 'conflict') void asked.problem.current
    // @ts-expect-error nothing is looked up, so nothing is not found
    if (asked.code === 'not_found') return
  } else {
    same<typeof asked.code, null>(true)
  }
  const config = await client.loadRuntimeConfig({ headers: { 'If-None-Match': '"x"' } })
  if (config.ok && config.status === 304) same<typeof config.value, null>(true)
  if (config.ok && config.status === 200) void config.value.policies.length
  // @ts-expect-error only what has an ETag takes the header
  await client.listRuns({ headers: { 'If-None-Match': '"x"' } })
  const runs = await client.listRuns()
  if (runs.ok) same<typeof runs.value, RunPage>(true)
  // @ts-expect-error reading is never refused for a full disk
  if (!runs.ok && runs.code === 'storage_full') return
  // @ts-expect-error of the operator API
  await client.listIssues({ params })
}

export async function operatorCalls(client: OperatorClient): Promise<void> {
  // @ts-expect-error a browser is sent there; nobody calls it
  void client.finishOidc
  const methods = await client.readSignInMethods()
  // @ts-expect-error it needs no role
  if (!methods.ok && methods.code === 'forbidden') return
  const issue = await client.readIssue({ params })
  if (issue.ok) same<typeof issue.value, Issue>(true)
  await client.createWorkspace({ body: { name: 'w' }, headers: { 'Idempotency-Key': 'k' } })
  // @ts-expect-error it creates nothing
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
  // @ts-expect-error this is no list
  eachItem(sure.readIssue, { params })
}

test('the calls above compile as they must', () => {
  // Everything was checked before this runs; the functions are never called.
  assert.equal(typeof publicCalls, typeof operatorCalls)
})
