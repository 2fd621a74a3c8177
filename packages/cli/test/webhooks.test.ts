import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { startServer, type TestServer } from './tacho.ts'

let server: TestServer
let status = 200
const receiver = createServer((_request, response) => response.writeHead(status).end()).listen(0, '127.0.0.1')
before(async () => {
  server = await startServer({ TACHO_WEBHOOK_NETWORKS: '127.0.0.0/8' })
  if (!receiver.listening) await once(receiver, 'listening')
})
after(async () => {
  receiver.close()
  await server.stop()
})

test('a test message says what the receiver answered', async () => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  const created = ['webhooks', 'create', url, '--events', 'run.failed', '-e', 'default/development']
  const { id } = await server.json<{ id: string }>(...created)
  const send = () => server.tacho(['webhooks', 'test', id, '-e', 'default/development'])
  const good = await send()
  assert.deepEqual([good.code, good.stdout], [0, 'The receiver answered 200.\n'])
  status = 500
  const bad = await send()
  assert.equal(bad.code, 1)
  assert.match(bad.stdout, /^The message was not delivered: .*500.*; the next attempt is /)
})

test('only a receiver that checks signatures gets a secret on the terminal', async () => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/other`
  const create = (format: string) =>
    server.tacho([
      'webhooks',
      'create',
      url,
      '--format',
      format,
      '--events',
      'issue.opened',
      '-e',
      'default/development',
    ])
  const standard = await create('standard')
  assert.match(standard.stdout, /^whsec_\S+\n$/)
  const slack = await create('slack')
  assert.deepEqual([slack.code, slack.stdout], [0, ''])
  assert.match(slack.stderr, /check no signature, so no secret is shown/)
  // Messages of all formats are signed, because a relay in front of a chat may check the signature.
  const [, rotate = ''] = /tacho (webhooks rotate \S+ --json)/.exec(slack.stderr) ?? []
  const rotated = await server.tacho([...rotate.split(' '), '-e', 'default/development'])
  assert.match((JSON.parse(rotated.stdout) as { secret: string }).secret, /^whsec_/)
})
