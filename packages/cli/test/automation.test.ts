import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ended, serveFrom, type Ended } from './tacho.ts'
import { freePort } from '../../server/test/setup/free-port.ts'

const BIN = fileURLToPath(new URL('../bin', import.meta.url))
const DOCUMENT = fileURLToPath(new URL('../../../docs/automation.md', import.meta.url))

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-automation-'))
after(() => rmSync(directory, { recursive: true }))

/** Runs the script from the document. */
async function runScript(): Promise<Ended> {
  const script = /```bash\n([^]*?)```/.exec(readFileSync(DOCUMENT, 'utf8'))?.[1] ?? ''
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('TACHO_'))
  const env = {
    ...Object.fromEntries(own),
    PATH: `${BIN}${path.delimiter}${process.env['PATH']}`,
    TACHO_PORT: String(await freePort()),
  }
  return ended(spawn('bash', ['-c', script], { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] }))
}

test('the script of the document makes two tenants with keys of chosen scopes, and can run twice', async () => {
  for (const round of ['created', 'already exists']) {
    const { code, stdout, stderr } = await runScript()
    assert.equal(code, 0, stderr)
    assert.match(stdout, new RegExp(`^Workspace globex ${round}`, 'm'))
    assert.match(stdout, /^Workspace acme already exists/m)
  }
  const key = (name: string): string => readFileSync(path.join(directory, `${name}.key`), 'utf8').trim()
  const server = await serveFrom(path.join(directory, 'data'))
  try {
    const event = { eventId: 'e', clientId: 'c', runId: 'r', agentName: 'a', eventType: 'X', label: 'x' }
    const record = (name: string): Promise<Response> =>
      fetch(`${server.url}/openapi/v1/events/batch`, {
        method: 'POST',
        headers: { 'x-api-key': key(name), 'content-type': 'application/json' },
        body: JSON.stringify([{ ...event, timestamp: Date.now() }]),
      })
    const read = (name: string): Promise<Response> =>
      fetch(`${server.url}/openapi/v1/runs`, { headers: { 'x-api-key': key(name) } })
    const counts = async (name: string): Promise<number> => {
      const { items } = (await (await read(name)).json()) as { items: unknown[] }
      return items.length
    }
    assert.deepEqual([(await record('acme-recorder')).status, (await record('acme-dashboard')).status], [200, 403])
    assert.deepEqual([(await read('acme-recorder')).status, (await read('acme-dashboard')).status], [403, 200])
    assert.deepEqual([await counts('acme-dashboard'), await counts('globex-dashboard')], [1, 0])
  } finally {
    await server.stop()
  }
})
