/** A guarding proxy with two policies: one blocks `delete_…`, the other needs approval for `pay`. */
import type { ServerResponse } from 'node:http'
import { answerJson, chatAnswer, eventsOf, type Script } from './scripted-model.ts'

const POLICIES = [
  {
    policyId: 'no-deletes',
    condition: 'tool.name.startsWith("delete_")',
    action: 'BLOCK',
    severity: 'HIGH',
    name: 'no-deletes',
    version: '1',
    description: 'Nothing is deleted here.',
  },
  {
    policyId: 'ask',
    condition: 'tool.name == "pay"',
    action: 'REQUIRE_APPROVAL',
    severity: 'HIGH',
    name: 'ask',
    version: '1',
    description: null,
  },
]
export const CALLS = [
  { id: 'call_del', name: 'delete_all', args: '{"path":"/"}' },
  { id: 'call_read', name: 'read_file', args: '{"path":"a"}' },
]
export const GUARD = { deployedPolicies: POLICIES, guarded: { approvalTimeoutMs: 10_000 } }
export const REFUSED = /delete_all.*not run|Nothing is deleted/s

export const stream = (response: ServerResponse, items: readonly unknown[], end = '') => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  // Send pieces that do not end with events.
  const bytes = Buffer.from(eventsOf(items, end))
  for (let at = 0; at < bytes.length; at += 31) response.write(bytes.subarray(at, at + 31))
  response.end()
}

export const streams = (body: Buffer): boolean => (JSON.parse(body.toString()) as { stream?: boolean }).stream === true

export function chatScript(calls: typeof CALLS): Script {
  return ({ body }, response) => {
    if (!streams(body)) return answerJson(response, chatAnswer('Let me see.', calls))
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-2026' }
    const delta = (each: object, reason: string | null = null) => ({
      ...chunk,
      choices: [{ index: 0, delta: each, finish_reason: reason }],
    })
    const pieces = calls.flatMap(({ id, name, args }, index) => [
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      ...args
        .split(':')
        .map((part, at) => delta({ tool_calls: [{ index, function: { arguments: at === 0 ? part : `:${part}` } }] })),
    ])
    stream(
      response,
      [
        delta({ role: 'assistant', content: 'Let me see.' }),
        ...pieces,
        delta({}, 'tool_calls'),
        { ...chunk, choices: [], usage: chatAnswer('').usage },
      ],
      'data: [DONE]\n\n',
    )
  }
}
