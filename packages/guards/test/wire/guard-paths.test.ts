/** Which addresses a guarding proxy judges: every spelling of one, no other, and where a redirection leads. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { CALLS, chatScript, GUARD, REFUSED } from './guarded-wire.ts'
import { startRecordedWire } from './recorded-wire.ts'
import { answerJson, chatAnswer } from './scripted-model.ts'

for (const path of [
  '/chat/completions/',
  '/chat%2Fcompletions',
  '/chat/completion%73?x=1',
  '/chat/completion%2573',
  '/chat/completions;x',
  '/chat/completions%20',
  '/chat/completions%3Fx',
  '/chat//./x/../Completions',
]) {
  test(`a path in another spelling is the same call: ${path}`, async () => {
    await using wire = await startRecordedWire(chatScript(CALLS), GUARD)
    const text = await spelled(`${wire.baseOf('openai', '/v1')}${path}`, 'POST')
    assert.match(text, REFUSED)
    assert.equal(text.includes('"delete_all"'), false)
  })
}

/** Sends the path unchanged, because `fetch` would resolve it. */
async function spelled(url: string, method: string): Promise<string> {
  const { origin, host } = new URL(url)
  const sent = request(origin, { method, path: url.slice(origin.length), headers: { host } })
  sent.end(
    method === 'POST' ? JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'Clean up' }] }) : '',
  )
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const pieces = await answer.toArray()
  return `${answer.statusCode} ${Buffer.concat(pieces as Buffer[]).toString()}`
}

for (const [method, path] of [
  ['GET', '/chat/completions/c1'],
  ['POST', '/chat/completions/c1'],
  ['GET', '/chat/completions'],
  ['PUT', '/chat/completions'],
  ['GET', '/messages/batches/b1/results'],
] as const) {
  test(`what cannot be judged is refused: ${method} ${path}`, async () => {
    await using wire = await startRecordedWire((_asked, response) => answerJson(response, chatAnswer('', CALLS)), GUARD)
    assert.match(await spelled(wire.baseOf('openai', `/v1${path}`), method), /^403 .*cannot judge/)
    assert.equal(wire.model.asked.length, 0)
  })
}

test('what has no calls in its answer passes a guard', async () => {
  await using wire = await startRecordedWire((_asked, response) => answerJson(response, { ok: true }), GUARD)
  for (const [method, path] of [
    ['GET', '/models'],
    ['DELETE', '/chat/completions/c1'],
    ['POST', '/messages/count_tokens'],
    ['GET', '/threads/t1/messages'],
  ] as const)
    assert.match(await spelled(wire.baseOf('openai', `/v1${path}`), method), /^200/, path)
})

test('a redirection stays behind the guard', async () => {
  let location = ''
  await using wire = await startRecordedWire((asked, response) => {
    response.writeHead(asked.path === '/v1/ask' ? 307 : 308, { location }).end()
  }, GUARD)
  const base = wire.baseOf('openai', '/v1')
  const ask = (path: string) =>
    fetch(`${base}${path}`, {
      method: 'POST',
      body: JSON.stringify({ model: 'gpt-5', messages: [] }),
      redirect: 'manual',
    })
  for (const own of [`${wire.model.origin}/v1/chat/completions/`, '/v1/chat/completions/', 'completions/']) {
    location = own
    const answer = await ask('/chat/completions')
    assert.equal(answer.status, 308)
    assert.equal(new URL(answer.headers.get('location') ?? '', base).href, `${base}/chat/completions/`)
  }
  for (const other of ['https://elsewhere.example/v1/chat/completions', '//elsewhere.example/', 'http://[']) {
    location = other
    for (const path of ['/chat/completions', '/ask']) {
      const answer = await ask(path)
      assert.equal(answer.status, 502)
      assert.equal(answer.headers.get('location'), null)
      await answer.text()
    }
  }
})
