/** Doctor names the reason if a server is not ready, or is not Tacho. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { runCommand } from './tacho.ts'

async function doctorAt(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { code, stdout } = await runCommand(['doctor'], { TACHO_URL: `http://127.0.0.1:${port}` })
  assert.equal(code, 1)
  return stdout
}

const refusing =
  (code: string, detail: string): RequestListener =>
  (_request, response) => {
    response.writeHead(503, { 'content-type': 'application/problem+json' })
    response.end(JSON.stringify({ type: `urn:tacho:error:${code}`, title: 'x', status: 503, code, detail }))
  }

test('doctor says why a server is not ready, and what to do', async (t) => {
  const cases: [code: string, detail: string, said: RegExp][] = [
    ['storage_full', 'The disk is nearly full', /not ready: The disk is nearly full\. .*Free space on the disk/],
    ['storage_unavailable', 'The database does not answer', /not ready: The database does not answer\. .*database/],
    ['storage_unavailable', 'The store is damaged', /not ready: The store is damaged\. .*tacho restore/],
    ['shutting_down', 'x', /not ready: .*It is stopping/],
  ]
  for (const [code, detail, said] of cases) assert.match(await doctorAt(t, refusing(code, detail)), said)
})

test('doctor names a server that is no Tacho', async (t) => {
  const others: RequestListener[] = [
    (_request, response) => response.end('<h1>It works!</h1>'),
    (_request, response) => response.writeHead(404).end(),
    (_request, response) => response.writeHead(502).end('Bad gateway'),
    (_request, response) => response.end(JSON.stringify({ status: 'ok' })),
  ]
  for (const other of others) assert.match(await doctorAt(t, other), /No Tacho answers at http:.*check the address/)
})
