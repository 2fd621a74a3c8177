/** Checking a password takes equally long for every address, and callers take turns. */
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { test, type TestContext } from 'node:test'
import { eventually } from '../../setup/eventually.ts'
import { startService, type Service } from '../../setup/service.ts'
import { newPerson, openBrowser, PASSWORD } from './browser.ts'
import { refusalOf } from '../web/contract.ts'

/** Counts the hashes of passwords that begin. */
function countHashes(t: TestContext): () => number {
  let count = 0
  const hook = createHook({ init: (_id, type) => void (type === 'ARGON2REQUEST' && (count += 1)) }).enable()
  t.after(() => hook.disable())
  return () => count
}

/** Signs in as if through a proxy, which names the client's address. */
const signInFrom = (service: Service, address: string, email: string, password: string) =>
  service.call('/operator/v1/sign-in', { body: { email, password }, headers: { 'x-forwarded-for': address } })

test('every failed sign-in takes one hash, whether the address is known or not', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  await newPerson(service, 'known@example.com', 'viewer', null)
  const hashes = countHashes(t)
  const costOf = async (email: string): Promise<number> => {
    const before = hashes()
    const answer = await openBrowser(service).post('/sign-in', { email, password: 'wrong' })
    assert.deepEqual(refusalOf(answer), [401, 'unauthenticated'], email)
    return hashes() - before
  }
  for (const email of ['known@example.com', 'KNOWN@example.com', 'unknown@example.com', 'constructor@example.com'])
    assert.deepEqual([email, await costOf(email)], [email, 1])

  // The owner of a workspace may invite any address, and try its password.
  const { workspaceId } = await service.newTenant('acme')
  for (const email of ['known@example.com', 'unknown@example.com']) {
    const invited = await service.operator<{ link: string }>(`/workspaces/${workspaceId}/invitations`, {
      body: { email, role: 'viewer' },
      headers: { authorization: `Bearer ${await ownerOf(service, workspaceId)}` },
    })
    const token = new URL(invited.body.link).hash.slice(1)
    const before = hashes()
    const answer = await openBrowser(service).post('/invitations/accept', { token, password: 'wrong password' })
    assert.deepEqual([...refusalOf(answer), hashes() - before], [403, 'forbidden', 1], email)
  }
})

async function ownerOf(service: Service, workspaceId: string): Promise<string> {
  const made = await service.operator<{ token: string }>(`/workspaces/${workspaceId}/tokens`, {
    body: { name: 'owner', role: 'owner' },
  })
  return made.body.token
}

test('the sign-ins of one address do not hold up those of another', async (t) => {
  const service = await startService({ trustProxy: 'loopback' })
  t.after(() => service.close())
  await newPerson(service, 'ann@example.com', 'viewer', null)
  let checked = 0
  const attack = Array.from({ length: 40 }, async (_, index) => {
    const { status, body } = await signInFrom(service, '192.0.2.1', `${index}@example.com`, 'wrong')
    if (status === 401) checked++
    return status === 503 ? (body as { detail: string }).detail : status
  })
  await eventually(() => checked > 0, 'the attack')
  const before = checked
  const own = await signInFrom(service, '198.51.100.2', 'ann@example.com', PASSWORD)
  const meanwhile = checked - before
  assert.equal(own.status, 200)
  const all = await Promise.all(attack)
  // 20 requests of the attack wait in the queue.
  assert.ok(meanwhile <= 10, `answered after ${meanwhile} more of the attack`)
  assert.deepEqual(new Set(all), new Set([401, 'Too many passwords are being checked']))
})
