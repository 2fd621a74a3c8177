/** A node does not start on a wrong database, and gives the reason in one sentence. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { StoreRefused } from '../../../src/storage/engine/store.ts'
import { useTestDatabase } from './store-trouble.ts'

const { createEmpty, query, url: databaseUrl, withStorage } = useTestDatabase()

describe('a node does not start, and gives the reason in one sentence,', () => {
  const refused = (url: string, expected: RegExp) =>
    assert.rejects(openPostgresStorage({ url, waitMs: 300 }), (error: unknown) => {
      assert.ok(error instanceof StoreRefused, String(error))
      assert.match(error.message, expected)
      const password = URL.parse(url)?.password ?? ''
      assert.ok(password === '' || !error.message.includes(password))
      return true
    })
  const changed = (change: (url: URL) => void) => {
    const url = new URL(databaseUrl())
    change(url)
    return url.href
  }

  test('with an invalid address', async () => {
    await refused('localhost:5432/tacho', /must have the form postgres:/)
    await refused('mysql://localhost/tacho', /must have the form postgres:/)
    await refused(
      changed((url) => url.searchParams.set('sslmode', 'prefer')),
      /sslmode must be/,
    )
    await refused(
      changed((url) => url.searchParams.set('sslmode', 'verify-ca')),
      /sslrootcert/,
    )
    await refused(
      changed((url) => url.searchParams.set('sslmode', 'verify-full&sslrootcert=/nowhere')),
      /sslmode must be/,
    )
    await refused(`${databaseUrl()}?sslmode=verify-full&sslrootcert=/nowhere`, /cannot be read \(ENOENT\)/)
    await refused(`${databaseUrl()}?target_session_attrs=primary`, /parameter target_session_attrs/)
  })

  test('without a server, a database or the right password', async () => {
    await refused(
      changed((url) => (url.port = '1')),
      /cannot be used: .*ECONNREFUSED/,
    )
    await refused(
      changed((url) => (url.pathname = '/nothing_here')),
      /nothing_here" does not exist/,
    )
    if (new URL(databaseUrl()).password)
      await refused(
        changed((url) => (url.password = 'wrong-one')),
        /password/,
      )
  })

  test('on a database with another encoding', async () => {
    const name = `${new URL(databaseUrl()).pathname.slice(1)}_latin`
    await query(`CREATE DATABASE ${name} ENCODING LATIN1 LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0`)
    await refused(
      changed((url) => (url.pathname = `/${name}`)),
      /encoding LATIN1/,
    )
    await query(`DROP DATABASE ${name}`)
  })

  test('on a store of a newer version, or with another history', async () => {
    await withStorage({}, async () => undefined)
    await query("INSERT INTO tacho.migrations VALUES (900, '900_future.sql', 'x', 0)")
    await refused(databaseUrl(), /Use the newer version/)
    await query('DELETE FROM tacho.migrations WHERE version = 900')
    await query("UPDATE tacho.migrations SET sha256 = 'x' || sha256 WHERE version = 1")
    await refused(
      databaseUrl(),
      /Another build of Tacho made this store: its migration 001_schema.sql is not the one of this version/,
    )
    await query('UPDATE tacho.migrations SET sha256 = substr(sha256, 2) WHERE version = 1')
    await withStorage({}, async () => undefined)
  })

  test('without permission to create its tables', async () => {
    const name = new URL(databaseUrl()).pathname.slice(1)
    await query(`CREATE ROLE ${name}_guest LOGIN PASSWORD 'guest'`)
    const empty = await createEmpty()
    const url = new URL(empty.url)
    url.username = `${name}_guest`
    url.password = 'guest'
    await refused(url.href, /Tacho may not create its tables in this database: permission denied/)
    await empty.drop()
    await query(`DROP ROLE ${name}_guest`)
  })
})
