import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { runCommand, startServer } from '../tacho.ts'

const server = await startServer()
after(() => server.stop())

test('a search that finds nothing says whether the index has everything', async (t) => {
  await server.text('search', '--enable')
  // Fake settings, because the index of a real server would be complete too soon.
  let settings: object = {
    state: 'INDEXING',
    indexedEvents: 12,
    waitingRuns: 3,
    waitingSince: '2026-01-01T00:00:00.000Z',
    error: null,
  }
  const proxy = createServer((request, response) => {
    if (request.url?.endsWith('/search/settings')) return void response.end(JSON.stringify(settings))
    const headers = { authorization: request.headers.authorization ?? '' }
    void fetch(`${server.url}${request.url}`, { headers })
      .then(async (answer) => response.writeHead(answer.status).end(await answer.text()))
      .catch(() => response.destroy())
  })
  t.after(() => proxy.close().closeAllConnections())
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const TACHO_URL = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const none = async () => {
    const { code, stdout, stderr } = await runCommand(['search', 'nosuchword'], {
      ...server.variables,
      TACHO_URL,
    })
    assert.deepEqual([code, stdout], [0, ''])
    return stderr
  }
  assert.match(
    await none(),
    /^No matching events yet\. Search is on: 12 events are indexed; .* Older runs are being indexed\. `tacho search --status`/,
  )
  settings = { ...settings, state: 'ON' }
  assert.match(await none(), /^No matching events yet\. Search is on: .* 3 runs wait/)
  settings = { ...settings, waitingRuns: 0, waitingSince: null }
  assert.equal(await none(), 'No matching events. `tacho search --help` shows how to write a query.\n')
})
