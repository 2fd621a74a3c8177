import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { IssueRecordReceipt } from '@tacho/contract/issues/issue-record.ts'
import type { IssueRecordPage } from '@tacho/contract/issues/operator-issue-record.ts'
import type { IssuePage } from '@tacho/contract/issues/issue.ts'
import { newApiKey, newOperatorToken } from '../../../src/domain/people/credential.ts'
import { eventually } from '../../setup/eventually.ts'
import { issueRecord } from '../../setup/issue-service.ts'
import { startProcess, temporaryDirectory } from '../../setup/process.ts'

const KINDS = 10
const CLIENTS = 20
const RECORDS = 1_000

test('a thousand records of ten kinds from twenty clients in any order make ten exact issues, even if the process is killed', async (t) => {
  const directory = temporaryDirectory(t)
  const apiKey = newApiKey(randomBytes).text
  const operatorToken = newOperatorToken(randomBytes).text
  const variables = { TACHO_INIT_API_KEY: apiKey, TACHO_INIT_OPERATOR_TOKEN: operatorToken }
  let server = startProcess(t, directory, variables)
  let url = server.ready()

  const records = Array.from({ length: RECORDS }, (_, index) =>
    issueRecord({
      sdkInstanceId: `client ${index % CLIENTS}`,
      detectionType: `KIND ${index % KINDS}`,
      recordKind: index % 10 === index % 90 ? 'RECOVERY' : 'DETECTION',
      runId: `run ${index % 61}`,
      payload: { tools: index % 2 === 0 ? ['read', 'write'] : ['WRITE', 'read'], attempt: index },
    }),
  )
  const order = records.map((record) => ({ record, place: randomBytes(4).readUInt32BE() }))
  order.sort((a, b) => a.place - b.place)
  const receipts: IssueRecordReceipt[] = []

  /** Repeats a record until it is answered, like a client. */
  async function send(record: object): Promise<void> {
    for (;;) {
      const address = await url
      try {
        const reply = await fetch(`${address}/openapi/v1/issue-records`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-api-key': apiKey },
          body: JSON.stringify(record),
        })
        assert.equal(reply.status, 202)
        receipts.push((await reply.json()) as IssueRecordReceipt)
        return
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
        await wait(20)
      }
    }
  }
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (const { record } of order.filter((_one, place) => place % CLIENTS === client)) {
      await send(record)
      if (receipts.length !== RECORDS / 2) continue
      server.signal('SIGKILL')
      await server.ended()
      server = startProcess(t, directory, variables)
      url = server.ready()
    }
  })
  await Promise.all(clients)
  assert.equal(new Set(receipts.map(({ recordId }) => recordId)).size, RECORDS)

  const ask = async <Body>(path: string): Promise<Body> => {
    const headers = { authorization: `Bearer ${operatorToken}` }
    return (await fetch(`${await url}/operator/v1${path}`, { headers })).json() as Promise<Body>
  }
  const [workspace] = (await ask<{ items: { id: string }[] }>('/workspaces')).items
  const [environment] = (await ask<{ items: { id: string }[] }>(`/workspaces/${workspace?.id}/environments`)).items
  const base = `/environments/${environment?.id}`
  for (const status of ['RECEIVED', 'EVALUATING']) {
    const left = () => ask<IssueRecordPage>(`${base}/issue-records?limit=1&status=${status}`)
    await eventually(async () => (await left()).items.length === 0, `no record that is ${status}`)
  }
  assert.deepEqual((await ask<IssueRecordPage>(`${base}/issue-records?status=FAILED`)).items, [])
  const issues = (await ask<IssuePage>(`${base}/issues`)).items
  const found = issues.map(({ detectionType, occurrences, recoveries, affectedRuns }) => [
    detectionType,
    occurrences,
    recoveries,
    affectedRuns,
  ])
  const expected = Array.from({ length: KINDS }, (_, kind) => {
    const of = records.filter((_one, index) => index % KINDS === kind)
    const detections = of.filter(({ recordKind }) => recordKind === 'DETECTION')
    const runs = new Set(detections.map(({ runId }) => runId)).size
    return [`kind ${kind}`, detections.length, of.length - detections.length, runs]
  })
  const byType = (a: unknown[], b: unknown[]) => (String(a[0]) < String(b[0]) ? -1 : 1)
  assert.deepEqual(found.toSorted(byType), expected.toSorted(byType))
})
