/** The parts of payloads that pages and commands show. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messagesAt } from '../src/record/payload-reader.ts'

test('a model that asks for a tool is understood in every shape', () => {
  const input = { order: '1007' }
  const text = JSON.stringify(input)
  const outputs: Record<string, unknown>[] = [
    // The message format of our integrations.
    { role: 'assistant', toolCalls: [{ id: 'c1', name: 'get_order', arguments: input }] },
    { role: 'assistant', content: null, tool_calls: [{ function: { name: 'get_order', arguments: text } }] },
    { role: 'assistant', content: [{ type: 'tool_use', name: 'get_order', input }] },
    { toolCalls: [{ toolCallId: 'c1', toolName: 'get_order', input }] },
  ]
  for (const output of outputs) {
    const asked = [{ role: 'assistant', text: '', images: [], toolCalls: [{ name: 'get_order', input }] }]
    assert.deepEqual(messagesAt({ output }, 'output'), asked, JSON.stringify(output))
    assert.deepEqual(messagesAt({ output: [output] }, 'output'), asked)
  }
})

test('calls of another shape are left out, not guessed', () => {
  for (const toolCalls of ['get_order', [1, null, {}], { name: 'x' }]) {
    assert.deepEqual(messagesAt({ output: { content: 'yes', toolCalls } }, 'output'), [
      { role: 'assistant', text: 'yes', images: [], toolCalls: [] },
    ])
  }
})

test('images of a message are found in every shape, and nothing else is one', () => {
  const data = 'iVBORw0KGgo='
  const address = `data:image/png;base64,${data}`
  const parts: Record<string, unknown>[] = [
    { type: 'image_url', image_url: { url: address } },
    { type: 'input_image', image_url: address },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
    { type: 'image', image: data, mediaType: 'image/png' },
    { type: 'image', image: address },
    { type: 'file', mediaType: 'image/png', data },
    { inlineData: { mimeType: 'image/png', data } },
    { inline_data: { mime_type: 'image/png', data } },
  ]
  const imagesOf = (content: unknown) => messagesAt({ messages: [{ role: 'user', content }] }, 'messages')[0]?.images
  for (const part of parts) assert.deepEqual(imagesOf([part]), [address], JSON.stringify(part))
  const far = 'https://evil.example/a.png'
  assert.deepEqual(imagesOf([{ type: 'image', source: { type: 'url', url: far } }]), [far])
  const others = [
    { type: 'file', mediaType: 'application/pdf', data },
    { image: {} },
    { source: null },
    null,
    'text',
    7,
  ]
  assert.deepEqual(imagesOf([{ text: 'yes' }, ...others]), [])
  assert.equal(imagesOf(Array.from({ length: 21 }, () => parts[0]))?.length, 20)
})
