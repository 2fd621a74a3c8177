/** A misspelt filter is refused, instead of answering with everything. The public interface ignores unknown parameters. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { Problem } from '@tacho/contract/web/errors.ts'
import type { OperatorRoute } from '@tacho/contract/web/route.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

test('every read refuses a parameter that it does not have', async () => {
  const { environmentId, workspaceId } = await service.newTenant('acme')
  const ids = new Map(
    Object.entries({ environmentId, workspaceId, version: '1', sequence: '1', event: 'issue.opened' }),
  )
  const reads = Object.values<OperatorRoute>(OPERATOR_ROUTES).filter(
    ({ method, access, openQuery }) => method === 'GET' && access !== 'anyone' && openQuery === undefined,
  )
  assert.ok(reads.length > 50)
  for (const { path } of reads) {
    const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids.get(name) ?? randomUUID())
    const { status, body } = await service.operator<Problem>(`${address}?zzz=1`)
    // Some belong to people who signed in, and are refused to a token before.
    if (status === 403) continue
    assert.equal(status, 400, path)
    assert.match(body.detail ?? '', /\bzzz is no parameter of this address\b/, path)
  }
})

test('the refusal names the parameter that was meant, also beside names of Object.prototype', async () => {
  const { environmentId } = await service.newTenant('globex')
  const refused = async (query: string) => {
    const { status, body } = await service.operator<Problem>(`/environments/${environmentId}/runs?${query}`)
    assert.equal(status, 400, query)
    return body.detail ?? ''
  }
  assert.match(await refused('statuss=FAILED'), /statuss is no parameter of this address: did you mean status\?/)
  assert.match(
    await refused('status=FAILED&constructor=1'),
    /^constructor is no parameter of this address: there are .*\bstatus\b/,
  )
  const long = await refused(Array.from({ length: 300 }, (_, n) => `${'s'.repeat(40)}${n}=1`).join('&'))
  assert.ok(long.length < 8_000, `${long.length}`)
})

test('the public interface ignores a parameter that it does not have', async () => {
  assert.equal((await service.api('/runs?statuss=FAILED')).status, 200)
})
