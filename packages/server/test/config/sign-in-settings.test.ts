import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig, type Environment } from '../../src/config/config.ts'
import { startProcess, temporaryDirectory } from '../setup/process.ts'

function faults(environment: Environment): string[] {
  const read = readConfig({}, environment)
  return read.ok ? [] : read.faults
}

const WHOLE = {
  TACHO_PUBLIC_URL: 'https://tacho.example.com/',
  TACHO_OIDC_ISSUER: 'https://id.example.com/realm',
  TACHO_OIDC_CLIENT_ID: 'tacho',
  TACHO_OIDC_CLIENT_SECRET: 'hunter2',
}

test('an identity provider is configured completely or not at all', () => {
  assert.deepEqual(faults(WHOLE), [])
  for (const name of Object.keys(WHOLE)) {
    const told = faults({ ...WHOLE, [name]: '' })
    assert.equal(told.length, 1)
    assert.match(told[0] ?? '', new RegExp(`also needs ${name}`))
    assert.ok(!told[0]?.includes('hunter2'))
  }
  assert.match(
    faults({ TACHO_OIDC_DOMAIN: 'example.com' })[0] ?? '',
    /TACHO_OIDC_DOMAIN configures an identity provider/,
  )
  assert.deepEqual(faults({ TACHO_PUBLIC_URL: 'https://tacho.example.com' }), [])
})

test('addresses, domains and e-mail addresses are validated', () => {
  const read = readConfig(
    {},
    { ...WHOLE, TACHO_OIDC_DOMAIN: 'Example.COM', TACHO_INIT_OPERATOR_EMAIL: 'Ann@Example.com' },
  )
  assert.ok(read.ok)
  const { publicUrl, oidcDomain, oidcDomainRole, initOperatorEmail } = read.config
  assert.deepEqual(
    [publicUrl, oidcDomain, oidcDomainRole, initOperatorEmail],
    ['https://tacho.example.com', 'example.com', 'viewer', 'ann@example.com'],
  )
  for (const [name, wrong] of [
    ['TACHO_PUBLIC_URL', 'tacho.example.com'],
    ['TACHO_PUBLIC_URL', 'https://u:p@tacho.example.com'],
    ['TACHO_PUBLIC_URL', 'https://tacho.example.com/?x'],
    ['TACHO_OIDC_DOMAIN', '@example.com'],
    // Only an owner can create an owner.
    ['TACHO_OIDC_DOMAIN_ROLE', 'owner'],
    ['TACHO_INIT_OPERATOR_EMAIL', 'ann'],
  ] as const) {
    assert.equal(faults({ ...WHOLE, [name]: wrong }).length, 1, `${name} ${wrong}`)
  }
})

test('roles of groups are an object of groups, workspaces and roles', () => {
  const mapping = { 'cn=admins,dc=acme': { acme: 'admin', '*': 'viewer' }, __proto__: { acme: 'owner' } }
  const read = readConfig({}, { ...WHOLE, TACHO_GROUP_ROLES: JSON.stringify(mapping) })
  assert.ok(read.ok)
  assert.deepEqual(
    [...(read.config.groupRoles ?? [])],
    [
      [
        'cn=admins,dc=acme',
        [
          { workspace: 'acme', role: 'admin' },
          { workspace: null, role: 'viewer' },
        ],
      ],
    ],
  )
  const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`g${index}`, { '*': 'viewer' }]))
  for (const wrong of [
    'admins',
    '[]',
    '{}',
    'null',
    '{"admins":"admin"}',
    '{"admins":{}}',
    '{"admins":{"acme":"boss"}}',
    '{"admins":{"acme":["admin"]}}',
    '{"admins":{"":"admin"}}',
    '{"admins":{"a\\u0000":"admin"}}',
    JSON.stringify(many),
  ]) {
    assert.match(
      faults({ ...WHOLE, TACHO_GROUP_ROLES: wrong })[0] ?? '',
      /^TACHO_GROUP_ROLES must be a JSON object/,
      wrong,
    )
  }
  assert.match(faults({ TACHO_GROUP_ROLES: '{"a":{"*":"viewer"}}' })[0] ?? '', /also needs TACHO_OIDC_ISSUER/)
  assert.equal(faults({ ...WHOLE, TACHO_OIDC_SCOPES: 'groups  roles' }).length, 1)
})

test('the first start prints a one-time link for the first person, who becomes owner; the next prints none', async (t) => {
  const directory = temporaryDirectory(t)
  const variables = { TACHO_INIT_OPERATOR_EMAIL: 'ann@example.com' }
  const first = startProcess(t, directory, variables)
  const url = await first.ready()
  const link = /^ {2}(http\S+)$/m.exec(first.stdout())?.[1] ?? ''
  assert.ok(link.startsWith(`${url.replace('127.0.0.1', 'localhost')}/invitation#tacho-invitation_`), first.stdout())
  assert.ok(!first.stderr().includes('tacho-invitation_'))
  const post = (path: string, body: object, cookie = '') =>
    fetch(`${url}/operator/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: url, ...(cookie === '' ? {} : { cookie }) },
      body: JSON.stringify(body),
    })
  const password = 'correct horse battery staple'
  const token = link.split('#')[1]
  assert.equal((await post('/invitations/accept', { token, password })).status, 200)
  const signIn = await post('/sign-in', { email: 'ann@example.com', password })
  const cookie = signIn.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  assert.equal((await post('/workspaces', { name: 'acme' }, cookie)).status, 201)
  for (const secret of [password, 'tacho-invitation_', cookie.split('=')[1] ?? '?']) {
    assert.ok(!first.stderr().includes(secret))
  }
  first.signal('SIGTERM')
  assert.equal(await first.ended(), 0)

  const second = startProcess(t, directory, variables)
  await second.ready()
  assert.ok(!second.stdout().includes('invitation'))
})
