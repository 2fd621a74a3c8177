/** Clients that find the proxy by their variables alone, and the table of the docs. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { generateText } from 'ai'
import OpenAI, { AzureOpenAI } from 'openai'
import { CLIENT_VARIABLES, redirected } from '../../src/wire/clients.ts'
import { startRecordedWire } from './recorded-wire.ts'
import { answerJson, chatAnswer, type Script } from './scripted-model.ts'

const ANTHROPIC = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'Hello.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 7 },
}
const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-5-2026',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Hello.', annotations: [] }],
    },
  ],
  usage: {
    input_tokens: 5,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 12,
  },
}

const script: Script = ({ path }, response) => {
  if (path.includes('/messages')) return answerJson(response, ANTHROPIC)
  return answerJson(response, path.includes('/responses') ? RESPONSE : chatAnswer('Hello.'))
}

const CALLS: Record<string, { path: string; call: () => Promise<unknown> }> = {
  openai: {
    path: '/v1/chat/completions',
    call: () =>
      new OpenAI({ apiKey: 'sk' }).chat.completions.create({
        model: 'gpt-5',
        messages: [{ role: 'user', content: 'Hi' }],
      }),
  },
  'openai for Azure': {
    path: '/openai/deployments/gpt-5/chat/completions?api-version=2025-01-01',
    call: () => {
      const client = new AzureOpenAI({ apiKey: 'sk', apiVersion: '2025-01-01' })
      return client.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] })
    },
  },
  '@anthropic-ai/sdk': {
    path: '/v1/messages',
    call: () =>
      new Anthropic({ apiKey: 'sk' }).messages.create({
        model: 'claude',
        max_tokens: 5,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
  },
  '@ai-sdk/openai': {
    path: '/v1/responses',
    call: () => generateText({ model: createOpenAI()('gpt-5'), prompt: 'Hi' }),
  },
  '@ai-sdk/anthropic': {
    path: '/v1/messages',
    call: () => generateText({ model: createAnthropic()('claude'), prompt: 'Hi' }),
  },
}

for (const [name, { path, call }] of Object.entries(CALLS)) {
  test(`${name} finds the proxy by its variable`, async () => {
    await using wire = await startRecordedWire(script)
    const { origin } = wire.model
    const given = { OPENAI_BASE_URL: `${origin}/v1`, ANTHROPIC_BASE_URL: origin, AZURE_OPENAI_ENDPOINT: origin }
    const { variables, routes } = redirected(wire.baseOf('').slice(0, -1), given)
    for (const [route, url] of routes) wire.routes.set(route, url)
    const keys = { OPENAI_API_KEY: 'sk', ANTHROPIC_API_KEY: 'sk' }
    const before = { ...process.env }
    Object.assign(process.env, keys, variables)
    // AzureOpenAI refuses both variables together.
    if (name.includes('Azure')) delete process.env['OPENAI_BASE_URL']
    try {
      await call()
    } finally {
      process.env = before
    }
    assert.equal(wire.model.asked[0]?.path, path)
    const events = await wire.end()
    assert.equal(events[0]?.payload['text'], 'Hi')
    const output = events[1]?.payload['output'] as { content: string } | undefined
    assert.equal(output?.content, 'Hello.')
  })
}

test('a variable that the user has set names the upstream; its siblings go there too', () => {
  const { variables, routes, unreadable } = redirected('http://127.0.0.1:1/s', {
    OPENAI_API_BASE: 'https://gateway.example.com/x/v1/',
    OLLAMA_HOST: '0.0.0.0:11434',
    AZURE_OPENAI_ENDPOINT: 'not an address',
    HTTP_PROXY: 'http://proxy.example.com',
    NO_PROXY: 'internal.example.com',
  })
  assert.equal(variables['OPENAI_BASE_URL'], 'http://127.0.0.1:1/s/openai/x/v1')
  assert.equal(routes.get('openai')?.href, 'https://gateway.example.com/')
  assert.equal(routes.get('ollama')?.href, 'http://127.0.0.1:11434/')
  assert.equal(variables['AZURE_OPENAI_ENDPOINT'], undefined)
  assert.deepEqual(unreadable, ['AZURE_OPENAI_ENDPOINT'])
  assert.equal(variables['NO_PROXY'], 'internal.example.com,127.0.0.1,localhost')
})

test('goose finds the proxy: its hosts are addresses without a version, and that of OpenAI goes before the base URL', () => {
  const none = redirected('http://127.0.0.1:1/s', {})
  assert.equal(none.variables['ANTHROPIC_HOST'], 'http://127.0.0.1:1/s/anthropic')
  assert.equal(none.variables['GOOGLE_HOST'], 'http://127.0.0.1:1/s/gemini')
  assert.equal(none.variables['OPENAI_HOST'], undefined)
  const { variables, routes } = redirected('http://127.0.0.1:1/s', { OPENAI_HOST: 'https://gateway.example.com/x' })
  assert.equal(variables['OPENAI_HOST'], 'http://127.0.0.1:1/s/openai-host/x')
  assert.equal(routes.get('openai-host')?.href, 'https://gateway.example.com/')
  assert.equal(variables['OPENAI_BASE_URL'], 'http://127.0.0.1:1/s/openai/v1')
  assert.equal(routes.get('openai')?.href, 'https://api.openai.com/')
})

test('an upstream behind a second variable of a provider is a call of that provider', async () => {
  await using wire = await startRecordedWire(script)
  for (const route of ['openai-host', 'openai-1']) {
    wire.routes.set(route, new URL(wire.model.origin))
    const body = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: route }] })
    await (await fetch(wire.baseOf(route, '/v1/chat/completions'), { method: 'POST', body })).text()
  }
  const calls = (await wire.end()).filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.deepEqual(
    calls.map(({ payload }) => payload['provider']),
    ['openai', 'openai'],
  )
})

test('the docs have every variable', () => {
  const page = readFileSync(new URL('../../../../docs/record.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (.*?) \|/gm)].map(([, name]) => name)
  assert.deepEqual(
    rows,
    CLIENT_VARIABLES.map(({ name }) => name),
  )
})
