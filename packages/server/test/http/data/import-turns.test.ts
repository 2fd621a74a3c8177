import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { importsRoutes } from '../../../src/http/data/imports.ts'
import type { OperatorDeps } from '../../../src/http/web/operator-serve.ts'
import { isRefusal } from '../../../src/http/web/reply-error.ts'

test('imports of a workspace take turns, also those that fail, and others do not wait for them', async () => {
  const reads: { workspaceId: string; fail: () => void }[] = []
  const readImport = (_body: Buffer, workspaceId: string) =>
    new Promise((resolve) =>
      reads.push({ workspaceId, fail: () => resolve({ line: 1, message: 'is not a line of an export' }) }),
    )
  let answer: ((asked: object) => Promise<unknown>) | undefined
  const serve = (_name: string, handler: typeof answer) => (answer = handler)
  importsRoutes({ serve, bodyValidator: { readImport } } as unknown as OperatorDeps)
  const sendOf = async (id: string): Promise<unknown> => {
    const request = { operator: { workspace: { id } }, actor: { id: 'a person' }, ip: '127.0.0.1' }
    const tenant = { environment: { archivedAt: null }, workspace: { id, archivedAt: null }, actor: request.actor }
    return answer?.({ ...tenant, request, reply: { request, raw: { destroyed: false } } })
  }
  const answers = [sendOf('a'), sendOf('a'), sendOf('a'), sendOf('b')]
  const order = () => reads.map(({ workspaceId }) => workspaceId).join('')
  await nextTurn()
  assert.equal(order(), 'ab')
  for (const [index, expected] of ['aba', 'aba', 'abaa', 'abaa'].entries()) {
    reads[index]?.fail()
    await nextTurn()
    assert.equal(order(), expected)
  }
  for (const refusal of await Promise.all(answers)) assert.ok(isRefusal(refusal))
})
