import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import Database from 'better-sqlite3'
import canonicalize from 'canonicalize'
import { Compile } from 'typebox/compile'
import { configurationCalls, type ConfigurationCalls } from '../../setup/configuration-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
let calls: ConfigurationCalls
before(async () => {
  service = await startService()
  calls = await configurationCalls(service)
})
after(() => service.close())

const schema = Compile(RuntimeConfig)

function damage(statements: string): void {
  const db = new Database(path.join(service.directory, 'tacho.db'))
  db.exec(statements)
  db.close()
}

test('a configuration that changed on disk gets 503 with the name of the policy, until it is deployed again', async () => {
  const policy = await calls.newPolicy({ condition: 'tool.input.amount > 1000.0' })
  await calls.deploy([['policy', policy.policyId, '1']])
  // Change the revision too, so that the node reads the store instead of its cache.
  damage(`UPDATE configurations SET body = replace(body, '1000.0', '9000.0'), revision = revision || 'x';
    UPDATE control SET revision = revision + 1`)
  const refused = await eventually(async () => {
    const reply = await calls.load()
    return reply.status === 200 ? null : reply
  }, 'the next read finds the damage')
  assert.equal(refused.status, 503)
  assert.match(refused.text, /"code":"configuration_damaged"/)
  assert.ok(refused.text.includes(policy.policyId), refused.text)
  assert.equal((await calls.deploy([['policy', policy.policyId, '1']])).status, 200)
  const { config } = await loaded()
  assert.ok(config.policies.some(({ condition }) => condition === 'tool.input.amount > 1000.0'))
  damage(`UPDATE policy_versions SET condition = replace(condition, '1000.0', '9000.0')`)
  const workspace = `${calls.policies}/${policy.policyId}`
  const version = await service.operator(`${workspace}/versions/1`)
  assert.deepEqual([version.status, version.text.includes('9000')], [503, false])
  const { status, text } = await service.operator(workspace)
  assert.deepEqual([status, text.includes('9000'), text.includes('"damaged":true')], [200, false, true])
  await calls.deploy([['policy', policy.policyId, null]])
})

async function loaded(): Promise<{ config: RuntimeConfig; etag: string }> {
  const { status, body, headers, text } = await calls.load()
  assert.equal(status, 200, text)
  assert.ok(schema.Check(body), text)
  return { config: body, etag: headers.get('etag') ?? '' }
}

test('an environment without deployments has an empty configuration, whose tag is derived from its revision', async () => {
  const key = await service.newKey({ scopes: ['config:read', 'policies:read'], environmentId: calls.staging })
  const { status, body, headers } = await calls.load({ 'x-api-key': key })
  assert.equal(status, 200)
  assert.deepEqual([body.prompts, body.policies], [[], []])
  assert.equal(headers.get('etag'), `W/"${body.revision}"`)
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(headers.get('cache-control'), 'private, no-cache')
  assert.equal(headers.get('vary'), 'X-API-Key')
})

test('deployed versions are served as written, with correct hashes, and change the revision', async () => {
  const before = await loaded()
  const content = 'Höflich, "immer"!\r\n\tZeile\u2028 🙂 \\u0041'
  const condition = 'tool.name  ==  "refund" // only this\n  && tool.input.amount > 100.0'
  const prompt = await calls.newPrompt(content)
  const policy = await calls.newPolicy({ condition, name: 'Refunds', description: 'Large ones', severity: 'CRITICAL' })
  const published = await calls.deploy([
    ['policy', policy.policyId, '1'],
    ['prompt', prompt.promptId, '1'],
  ])
  assert.equal(published.status, 200, published.text)
  const { config, etag } = await loaded()
  assert.notEqual(config.revision, before.config.revision)
  assert.equal(config.revision, published.body.revision)
  assert.equal(etag, `W/"${config.revision}"`)
  assert.deepEqual(
    config.prompts.find(({ promptId }) => promptId === prompt.promptId),
    {
      promptId: prompt.promptId,
      name: prompt.name,
      versionId: prompt.newest.versionId,
      version: '1',
      content,
      contentHash: hash('sha256', content),
    },
  )
  assert.deepEqual(
    config.policies.find(({ policyId }) => policyId === policy.policyId),
    {
      policyId: policy.policyId,
      name: 'Refunds',
      description: 'Large ones',
      version: '1',
      condition,
      severity: 'CRITICAL',
      action: 'BLOCK',
      onError: 'act',
    },
  )
  const { revision, ...rest } = config
  assert.equal(revision, hash('sha256', canonicalize(rest) ?? ''), 'clients can compute it')
})

test('If-None-Match with the tag (alone, in a list, or strong) or * gets 304; any other gets 200', async () => {
  const { etag, config } = await loaded()
  const strong = etag.slice(2)
  for (const tag of [etag, strong, `"old", ${etag}`, `"a,b",W/"c",${strong}`, '*']) {
    const { status, text } = await calls.load({ 'if-none-match': tag })
    assert.deepEqual([status, text], [304, ''], tag)
  }
  for (const tag of ['"old"', 'W/"old", "older"', config.revision, `"${config.revision}`, '"*"', '']) {
    const { status, body, headers } = await calls.load({ 'if-none-match': tag })
    assert.deepEqual([status, body.revision, headers.get('etag')], [200, config.revision, etag], tag)
  }
})

test('after a publication the old tag gets 200, at once on the publishing node', async () => {
  const policy = await calls.newPolicy()
  for (const version of ['1', null, '1']) {
    const { etag } = await loaded()
    assert.equal((await calls.deploy([['policy', policy.policyId, version]])).status, 200)
    const { status, headers } = await calls.load({ 'if-none-match': etag })
    assert.equal(status, 200)
    assert.notEqual(headers.get('etag'), etag)
  }
})

test('a 304 has no body, and the headers that a cache needs', async () => {
  const { etag } = await loaded()
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  // Two lines of If-None-Match are one list.
  socket.write(
    `GET /openapi/v1/runtime-config HTTP/1.1\r\nHost: x\r\nX-API-Key: ${service.apiKey}\r\n` +
      `If-None-Match: "old"\r\nIf-None-Match: ${etag}\r\nConnection: close\r\n\r\n`,
  )
  const text = Buffer.concat((await socket.toArray()) as Buffer[]).toString()
  const [head = '', body] = text.split('\r\n\r\n')
  const [line, ...headers] = head.split('\r\n')
  assert.equal(line, 'HTTP/1.1 304 Not Modified')
  assert.equal(body, '')
  const names = headers.map((header) => header.slice(0, header.indexOf(':')).toLowerCase())
  for (const wanted of ['etag', 'cache-control', 'vary', 'date']) assert.ok(names.includes(wanted), wanted)
  for (const unwanted of ['content-type', 'content-length', 'transfer-encoding', 'last-modified']) {
    assert.ok(!names.includes(unwanted), unwanted)
  }
  assert.ok(head.includes(`etag: ${etag}`))
})

test('a proxy that compresses and keeps weak tags gets its 304', async () => {
  // Such proxies forward a weak tag unchanged, and may store it with a differently encoded body.
  const { etag } = await loaded()
  assert.match(etag, /^W\/"[0-9a-f]{64}"$/)
  const answer = await calls.load({ 'if-none-match': etag, 'accept-encoding': 'gzip, br' })
  assert.equal(answer.status, 304)
})

test('HEAD is answered like GET, without a body', async () => {
  const { etag } = await loaded()
  const head = (headers: Record<string, string>) => service.api('/runtime-config', { method: 'HEAD', headers })
  const whole = await head({})
  assert.deepEqual([whole.status, whole.headers.get('etag'), whole.text], [200, etag, ''])
  assert.equal((await head({ 'if-none-match': etag })).status, 304)
})

test('the key selects the environment; keys of other environments do not see it', async () => {
  const foreign = await service.newTenant('foreign')
  const key = await service.newKey({
    scopes: ['config:read', 'policies:read'],
    environmentId: foreign.environmentId,
  })
  const { etag } = await loaded()
  const { status, body } = await calls.load({ 'x-api-key': key, 'if-none-match': etag })
  assert.equal(status, 200)
  assert.deepEqual([body.prompts, body.policies], [[], []])
})

test('both scopes are required', async () => {
  for (const scope of ['config:read', 'policies:read'] as const) {
    const key = await service.newKey({ scopes: [scope] })
    assert.equal((await calls.load({ 'x-api-key': key, 'if-none-match': '*' })).status, 403)
  }
  assert.equal((await service.call('/openapi/v1/runtime-config', { headers: { 'if-none-match': '*' } })).status, 401)
})

test('clients that poll constantly see the publications in order, and never a mixed one', async () => {
  const policy = await calls.newPolicy()
  for (let version = 2; version <= 10; version++) await calls.pushPolicy(policy.policyId, `tool.name == "${version}"`)
  let publishing = true
  const seen: string[] = []
  const client = async () => {
    let etag = ''
    while (publishing) {
      const { status, body, headers } = await calls.load(etag === '' ? {} : { 'if-none-match': etag })
      if (status === 200) {
        const { revision, ...rest } = body
        assert.equal(revision, hash('sha256', canonicalize(rest) ?? ''))
        etag = headers.get('etag') ?? ''
        seen.push(body.policies.find(({ policyId }) => policyId === policy.policyId)?.version ?? '0')
      } else assert.equal(status, 304)
      await wait(1)
    }
  }
  const clients = [client()]
  for (let version = 1; version <= 10; version++) {
    assert.equal((await calls.deploy([['policy', policy.policyId, String(version)]])).status, 200)
  }
  const { config } = await loaded()
  assert.equal(config.policies.find(({ policyId }) => policyId === policy.policyId)?.version, '10')
  publishing = false
  await Promise.all(clients)
  const numbers = seen.map(Number)
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  )
})
