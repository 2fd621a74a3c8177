import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { readAccount } from '../../src/engine/credentials.ts'
import { chosenProfile, profilesFile, readProfiles, writeProfiles } from '../../src/engine/profiles.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-profiles-'))
after(() => rmSync(directory, { recursive: true }))

const variables = { XDG_CONFIG_HOME: directory }
const WORK = { url: 'https://tacho.example.com', token: 'tacho-operator_a_b', environment: null }
const HOME = { url: 'http://localhost:4680', token: 'tacho-operator_c_d', environment: null }

test('profiles are kept in a file that only its owner can read', () => {
  assert.deepEqual(readProfiles(variables).byName.size, 0)
  writeProfiles({ current: 'work', byName: new Map(Object.entries({ work: WORK, __proto__x: HOME })) }, variables)
  assert.equal(statSync(profilesFile(variables)).mode & 0o777, 0o600)
  assert.deepEqual(chosenProfile(variables), { name: 'work', profile: WORK })
})

test('words of Object.prototype name no profile', () => {
  for (const name of ['constructor', '__proto__', 'toString']) {
    assert.throws(() => chosenProfile({ ...variables, TACHO_PROFILE: name }), {
      exitCode: 2,
      message: /^TACHO_PROFILE is/,
    })
  }
})

test('a token is only for the address that it was kept with', () => {
  assert.equal(readAccount({}, variables).url, WORK.url)
  assert.equal(readAccount({ url: `${WORK.url}/` }, variables).token, WORK.token)
  for (const [flag, more] of [
    ['http://evil.example', {}],
    [undefined, { TACHO_URL: 'http://evil.example' }],
  ] as const) {
    assert.throws(() => readAccount({ url: flag }, { ...variables, ...more }), { exitCode: 2, message: /is for https/ })
  }
})

test('a token of the environment is never sent to the address of a profile', () => {
  const { url, token } = readAccount({}, { ...variables, TACHO_OPERATOR_TOKEN: 'tacho-operator_e_f' })
  assert.deepEqual([url, token], ['http://localhost:4680', 'tacho-operator_e_f'])
})

test('a damaged file is named, and is not taken for an empty one', () => {
  for (const text of ['', '{', '[]', '{"current":"a","profiles":{"a":{}}}', '{"current":1,"profiles":{}}']) {
    writeFileSync(profilesFile(variables), text)
    assert.throws(() => readProfiles(variables), { exitCode: 2, message: /is damaged/ }, text)
  }
})
