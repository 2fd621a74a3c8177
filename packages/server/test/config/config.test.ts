import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { randomBytes } from 'node:crypto'
import { readConfig, settingTexts, SETTINGS, type Environment, type Flags } from '@tacho/server/config/config.ts'
import { newApiKey, newOperatorToken } from '@tacho/server/domain/people/credential.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-config-'))
after(() => rmSync(folder, { recursive: true }))

function config(flags: Flags = {}, environment: Environment = {}) {
  const read = readConfig(flags, environment)
  assert.ok(read.ok, JSON.stringify(read))
  return read.config
}

function faults(flags: Flags, environment: Environment = {}): string[] {
  const read = readConfig(flags, environment)
  assert.ok(!read.ok)
  return read.faults
}

test('without flags and variables the server listens on loopback, port 4680, with its store in ./data', () => {
  assert.deepEqual(config(), {
    host: '127.0.0.1',
    port: 4680,
    dataDir: './data',
    databaseUrl: null,
    databasePool: 10,
    databaseTimeout: 20_000,
    readyCommitWait: 30_000,
    workers: 1,
    trustProxy: [],
    logLevel: 'info',
    rateLimit: 5000,
    operatorRateLimit: 500,
    otlpMaxBytes: 20_971_520,
    minFreeDisk: 268_435_456,
    packPayloads: 'auto',
    requestTimeout: 30_000,
    drainDelay: 5000,
    drainTimeout: 8000,
    webhookNetworks: [],
    console: true,
    metrics: true,
    docs: true,
    initWorkspace: 'default',
    initEnvironment: 'development',
    initApiKey: null,
    initOperatorToken: null,
    initCredentialsFile: null,
    initOperatorEmail: null,
    publicUrl: null,
    smtpUrl: null,
    mailFrom: null,
    oidcIssuer: null,
    oidcClientId: null,
    oidcClientSecret: null,
    oidcName: 'Single sign-on',
    oidcDomain: null,
    oidcDomainRole: 'viewer',
    oidcGroupsClaim: 'groups',
    oidcScopes: null,
    groupRoles: null,
    scimToken: null,
  })
})

test('a flag wins over its variable, and a variable over the default', () => {
  const environment = { TACHO_PORT: '1', TACHO_HOST: '::1' }
  const { port, host } = config({ port: '2' }, environment)
  assert.deepEqual([port, host], [2, '::1'])
})

test('the configuration cannot be changed', () => {
  assert.ok(Object.isFrozen(config()))
})

test('an empty variable counts as unset; an empty flag is rejected', () => {
  assert.equal(config({}, { TACHO_HOST: '', TACHO_INIT_API_KEY: '', TACHO_INIT_API_KEY_FILE: '' }).host, '127.0.0.1')
  assert.deepEqual(faults({ host: '' }), ['--host must be a text of 1 to 255 characters, not "".'])
})

test('each number is accepted at its limits and rejected one past them', () => {
  const ranges: [string, string[], string[]][] = [
    ['port', ['0', '65535'], ['-1', '65536', '4680.0', '0x10', '', ' 1', '1e3']],
    ['rateLimit', ['1', '1000000'], ['0', '1000001']],
    ['operatorRateLimit', ['1', '1000000'], ['0', '1000001']],
    ['minFreeDisk', ['0B', '1TiB', '1099511627776B'], ['1099511627777B', '256', '256MB', '-1MiB', '1.5GiB']],
    ['requestTimeout', ['1s', '1000ms', '60m', '1h'], ['999ms', '3600001ms', '30', '30 s']],
    ['drainTimeout', ['0s', '10m'], ['600001ms', '11m']],
  ]
  for (const [name, good, bad] of ranges) {
    for (const text of good) config({ [name]: text })
    for (const text of bad) assert.equal(faults({ [name]: text }).length, 1, `${name} ${text}`)
  }
})

test('sizes and durations accept units, in any case', () => {
  const { minFreeDisk, drainTimeout } = config({ minFreeDisk: '512mib', drainTimeout: '2M' })
  assert.deepEqual([minFreeDisk, drainTimeout], [512 * 1024 * 1024, 120_000])
})

test('proxies are addresses, networks or named ranges', () => {
  const trusted = (text: string) => config({ trustProxy: text }).trustProxy
  assert.deepEqual(trusted('10.0.0.0/8, ::1,fd00::/8,loopback'), ['10.0.0.0/8', '::1', 'fd00::/8', 'loopback'])
  assert.deepEqual(trusted('none'), [])
  for (const text of [
    'true',
    '10.0.0.0/33',
    '::/129',
    '10.0.0',
    'example.org',
    '10.0.0.1,',
    '1.1.1.1/8/8',
    '10.0.0.0/',
  ]) {
    assert.equal(faults({ trustProxy: text }).length, 1, text)
  }
})

test('switches are on or off and levels are named', () => {
  assert.equal(config({ metrics: 'off' }).metrics, false)
  assert.deepEqual(faults({ docs: 'true' }), ['--docs must be on or off, not "true".'])
  assert.match(
    faults({}, { TACHO_LOG_LEVEL: 'loud' })[0] ?? '',
    /^TACHO_LOG_LEVEL must be one of debug, info, .*, not "loud"\.$/,
  )
})

test('an unknown flag or variable is rejected by name, with the probable one suggested', () => {
  assert.deepEqual(faults({ prot: '1' }), ['There is no flag --prot; did you mean --port?'])
  assert.deepEqual(faults({ initApiKey: 'x' }), ['There is no flag --init-api-key.'])
  assert.deepEqual(faults({}, { TACHO_DATADIR: 'x' }), [
    'There is no setting TACHO_DATADIR; did you mean TACHO_DATA_DIR?',
  ])
  assert.deepEqual(faults({}, { TACHO_SOMETHING_ELSE: 'x' }), ['There is no setting TACHO_SOMETHING_ELSE.'])
  assert.deepEqual(faults({}, { TACHO_PORT_FILE: 'x' }).length, 1)
})

test('variables of the other commands and of other programs are ignored', () => {
  config({}, { TACHO_URL: 'x', TACHO_OPERATOR_TOKEN: 'x', TACHO_API_KEY: 'x', PATH: 'x', TACHOMETER: 'x' })
})

test('every variable that the SDK documents may be set in the shell that starts the server', () => {
  const options = readFileSync(new URL('../../../../docs/sdk/options.md', import.meta.url), 'utf8')
  const variables = new Set(options.match(/TACHO_[A-Z_]+/g))
  assert.deepEqual([...variables].toSorted(), ['TACHO_API_KEY', 'TACHO_CLIENT_ID', 'TACHO_RELEASE', 'TACHO_URL'])
  config({}, Object.fromEntries([...variables].map((name) => [name, 'x'])))
})

test('the service links of Kubernetes are one error that says what to do', () => {
  const links = {
    TACHO_PORT: 'tcp://10.0.0.1:4680',
    TACHO_SERVICE_HOST: '10.0.0.1',
    TACHO_SERVICE_PORT: '4680',
    TACHO_PORT_4680_TCP_ADDR: '10.0.0.1',
  }
  const told = faults({}, links)
  assert.equal(told.length, 1)
  assert.match(told[0] ?? '', /enableServiceLinks/)
})

test('all errors are reported together', () => {
  const told = faults({ port: 'x', host: '' }, { TACHO_RATE_LIMIT: '0', TACHO_WHAT: '1' })
  assert.equal(told.length, 4)
})

test('first credentials are checked for their form and never printed', () => {
  const [key, token] = [newApiKey(randomBytes).text, newOperatorToken(randomBytes).text]
  const given = config({}, { TACHO_INIT_API_KEY: key, TACHO_INIT_OPERATOR_TOKEN: token })
  assert.deepEqual([given.initApiKey, given.initOperatorToken], [key, token])
  const told = faults({}, { TACHO_INIT_API_KEY: token, TACHO_INIT_OPERATOR_TOKEN: 'hunter2' })
  assert.equal(told.length, 2)
  for (const fault of told) assert.ok(!fault.includes(token) && !fault.includes('hunter2'), fault)
})

test('a first credential may come from a file, without its last line break', () => {
  const key = newApiKey(randomBytes).text
  const file = path.join(folder, 'key')
  writeFileSync(file, `${key}\n`)
  assert.equal(config({}, { TACHO_INIT_API_KEY_FILE: file }).initApiKey, key)
  assert.deepEqual(faults({}, { TACHO_INIT_API_KEY_FILE: file, TACHO_INIT_API_KEY: key }), [
    'Set only one of TACHO_INIT_API_KEY and TACHO_INIT_API_KEY_FILE.',
  ])
  const missing = path.join(folder, 'missing')
  assert.match(faults({}, { TACHO_INIT_API_KEY_FILE: missing })[0] ?? '', /cannot be read \(ENOENT\)/)
  writeFileSync(file, `${key} ${key}`)
  assert.ok(!faults({}, { TACHO_INIT_API_KEY_FILE: file })[0]?.includes(key))
})

test('every setting has a flag or is a secret, a variable of its own, and a help text', () => {
  const texts = settingTexts()
  assert.equal(texts.length, Object.keys(SETTINGS).length)
  assert.equal(new Set(texts.map(({ variable }) => variable)).size, texts.length)
  for (const { name, flag, variable, help, byDefault } of texts) {
    assert.ok(help.length > 10, name)
    assert.match(variable, /^TACHO_[A-Z_]+$/)
    if (flag === null) assert.equal(byDefault, null)
    else assert.match(flag, /^--[a-z-]+ <[^>]+>$/)
  }
  assert.equal(texts.find(({ name }) => name === 'dataDir')?.flag, '--data-dir <directory>')
})

test('several workers need a database', () => {
  const [fault = ''] = faults({ workers: '2' })
  assert.match(fault, /^--workers 2 needs a database/)
  assert.equal(config({ workers: '2', databaseUrl: 'postgres://h/d' }).workers, 2)
  assert.equal(config({}, { TACHO_WORKERS: '1' }).workers, 1)
  assert.equal(faults({ workers: '0', databaseUrl: 'postgres://h/d' }).length, 1)
  assert.equal(faults({ workers: '257', databaseUrl: 'postgres://h/d' }).length, 1)
})
