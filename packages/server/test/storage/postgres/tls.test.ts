/** Connections are encrypted and verified as the address says. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { StoreRefused } from '../../../src/storage/engine/store.ts'
import { startPostgres, type PostgresServer } from '../../setup/postgres-server.ts'

const isMissing = spawnSync('openssl', ['version']).status !== 0

describe('TLS', { skip: isMissing && 'openssl, which makes the certificates, is not installed' }, () => {
  let folder: string
  let server: PostgresServer
  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'tacho-tls-'))
    // Each certificate is its own authority.
    for (const name of ['server', 'stranger']) {
      const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1']
      const files = ['-keyout', `${folder}/${name}.key`, '-out', `${folder}/${name}.crt`]
      execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names, ...files], {
        stdio: 'ignore',
      })
    }
    const read = (name: string) => readFileSync(path.join(folder, name), 'utf8')
    const files = { 'server.crt': read('server.crt'), 'server.key': read('server.key') }
    server = await startPostgres({ files, settings: ['ssl = on'] })
  })
  after(async () => {
    await server.close()
    rmSync(folder, { recursive: true })
  })

  const address = (parameters: string, host = '127.0.0.1') =>
    `${server.url().replace('127.0.0.1', host)}?${parameters.replaceAll('@', `${folder}/`)}`

  async function encrypted(url: string): Promise<boolean> {
    const storage = await openPostgresStorage({ url, waitMs: 300 })
    const client = new pg.Client(server.url())
    await client.connect()
    const { rows } = await client.query(
      "SELECT bool_and(ssl) AS ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tacho'",
    )
    await client.end()
    await storage.close()
    return rows[0].ssl as boolean
  }

  const refused = (url: string, expected: RegExp) =>
    assert.rejects(openPostgresStorage({ url, waitMs: 300 }), (error: unknown) => {
      assert.ok(error instanceof StoreRefused)
      assert.match(error.message, expected)
      return true
    })

  test('is not used unless the address requires it', async () => {
    assert.equal(await encrypted(server.url()), false)
    assert.equal(await encrypted(address('sslmode=disable')), false)
  })

  test('require encrypts, and verifies the server only if an authority is given', async () => {
    assert.equal(await encrypted(address('sslmode=require')), true)
    assert.equal(await encrypted(address('sslmode=require&sslrootcert=@server.crt')), true)
    await refused(address('sslmode=require&sslrootcert=@stranger.crt'), /self-signed|unable to verify/)
  })

  test('verify-ca verifies the authority, not the name', async () => {
    assert.equal(await encrypted(address('sslmode=verify-ca&sslrootcert=@server.crt', 'localhost')), true)
    await refused(address('sslmode=verify-ca&sslrootcert=@stranger.crt'), /self-signed|unable to verify/)
  })

  test('verify-full verifies both', async () => {
    assert.equal(await encrypted(address('sslmode=verify-full&sslrootcert=@server.crt')), true)
    await refused(address('sslmode=verify-full&sslrootcert=@server.crt', 'localhost'), /altnames/)
    await refused(address('sslmode=verify-full'), /self-signed|unable to verify/)
    await refused(address('sslmode=verify-full&sslrootcert=system'), /self-signed|unable to verify/)
  })

  test('fails on a server without TLS instead of connecting unencrypted', async () => {
    const plain = await startPostgres()
    await refused(`${plain.url()}?sslmode=require`, /does not support SSL/)
    await plain.close()
  })
})
