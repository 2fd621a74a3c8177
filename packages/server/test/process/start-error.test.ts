import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '@tacho/server/config/config.ts'
import { startErrorText } from '@tacho/server/process/main.ts'
import { StorageError } from '@tacho/server/storage/engine/store.ts'

const read = readConfig({ port: '80', host: 'here.invalid' }, {})
assert.ok(read.ok)
const { config } = read
const errorOf = (code: string, syscall?: string) => Object.assign(new Error('x'), { code, syscall })

test('an error that people can fix is a sentence that names the setting', () => {
  assert.match(
    startErrorText(errorOf('EACCES', 'listen'), config) ?? '',
    /^This user has no permission for port 80\. .*--port\.$/,
  )
  assert.match(
    startErrorText(errorOf('ENOTFOUND', 'getaddrinfo'), config) ?? '',
    /^"here\.invalid" is not an address .*--host\.$/,
  )
  assert.match(
    startErrorText(errorOf('EROFS', 'mkdir'), config) ?? '',
    /^The data directory \/.*data cannot be used \(EROFS\)/,
  )
  assert.match(startErrorText(errorOf('SQLITE_READONLY_DIRECTORY'), config) ?? '', /^The data directory/)
  assert.match(startErrorText(errorOf('SQLITE_CORRUPT'), config) ?? '', /damaged/)
  const full = new StorageError('storage_full', 'The disk is full')
  assert.match(startErrorText(full, config) ?? '', /^The disk of the data directory \/.*data is full\. Free space/)
})

test('a bug is not turned into a sentence', () => {
  for (const error of [new Error('x'), new TypeError('x'), errorOf('ERR_INVALID_ARG_TYPE'), 'x', undefined]) {
    assert.equal(startErrorText(error, config), null)
  }
})
