import { fields, text, type Fields } from '../../../../sdk/src/integrations/host.ts'
import type { ModelResult } from '../../../../sdk/src/integrations/model-call.ts'
import type { Collector } from '../../../../sdk/src/integrations/model-stream.ts'
import { RESPONSES } from '../../../../sdk/src/integrations/openai-methods.ts'
import { callKey, listOf, namedCall, type Protocol } from './protocol.ts'

export const OPENAI_RESPONSES: Protocol = {
  ...RESPONSES,
  name: 'openai-responses',
  stream: () => new ResponsesStream(),
  continues: ({ previous_response_id: id, conversation }) =>
    text(id) ?? text(conversation) ?? text(fields(conversation)['id']),
  refusing: {
    named: ({ item, response, output }) =>
      [fields(item), ...listOf(fields(response)['output']), ...listOf(output)]
        .filter(isCall)
        .flatMap((call) => namedCall(call['call_id'] ?? call['id'], call['name']) ?? []),
    whole: (answer, refusals) => ({
      ...answer,
      output: listOf(answer['output']).map((item) => {
        const refusal = isCall(item) ? refusals.get(keyIn(item)) : undefined
        return refusal === undefined ? item : messageItem(item, refusal)
      }),
    }),
    stream(refusals) {
      const refused = new Map<unknown, string>()
      return (event) => {
        const { type, output_index: index } = event
        const item = fields(event['item'])
        const refusal = isCall(item) ? refusals.get(keyIn(item)) : undefined
        if (type === 'response.output_item.added' && refusal !== undefined) {
          refused.set(index, refusal)
          return begun(event, item, refusal)
        }
        if (type === 'response.output_item.done' && refusal !== undefined)
          return [{ ...event, item: messageItem(item, refusal) }]
        if (/_(?:arguments|input)\.(?:delta|done)$/.test(String(type)) && refused.has(index)) return []
        if (!/^response\.(?:completed|incomplete|failed)$/.test(String(type)) || refusals.size === 0) return undefined
        return [{ ...event, response: OPENAI_RESPONSES.refusing?.whole(fields(event['response']), refusals) }]
      }
    },
  },
}

const isCall = ({ type }: Fields): boolean => type === 'function_call' || type === 'custom_tool_call'

const keyIn = (item: Fields): string => callKey(item['call_id'] ?? item['id'], item['name'])

const partOf = (refusal: string): Fields => ({ type: 'output_text', text: refusal, annotations: [] })

function messageItem({ id }: Fields, refusal: string): Fields {
  return {
    type: 'message',
    id: `msg_${String(id)}`,
    status: 'completed',
    role: 'assistant',
    content: [partOf(refusal)],
  }
}

/** The first events of the text that replaces the call. */
function begun(event: Fields, item: Fields, refusal: string): Fields[] {
  const whole = messageItem(item, refusal)
  const at = { item_id: whole['id'], output_index: event['output_index'], content_index: 0 }
  const outputPart = partOf(refusal)
  return [
    { ...event, item: { ...whole, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...at, part: { ...outputPart, text: '' } },
    { type: 'response.output_text.delta', ...at, delta: refusal, logprobs: [] },
    { type: 'response.output_text.done', ...at, text: refusal, logprobs: [] },
    { type: 'response.content_part.done', ...at, part: outputPart },
  ]
}

/** Some servers send only the single items of an answer, and a stream may end before its last event. */
class ResponsesStream implements Collector {
  readonly #stream = RESPONSES.stream()
  readonly #items: Fields[] = []
  #listed: Fields[] = []

  get isComplete(): boolean {
    return this.#stream.isComplete
  }

  add(event: Fields): boolean {
    const response = fields(event['response'])
    if (event['type'] === 'response.output_item.done') this.#items.push(fields(event['item']))
    if (response['output'] !== undefined) this.#listed = listOf(response['output'])
    const isBare =
      /^response\.(?:completed|incomplete)$/.test(String(event['type'])) && listOf(response['output']).length === 0
    return this.#stream.add(isBare ? { ...event, response: { ...response, output: this.#items } } : event)
  }

  /** Uses the finished items, not the list in the last event: clients run a call when its item is done. */
  result(): ModelResult {
    const result = this.#stream.result()
    const listed = new Set(this.#listed.filter(isCall).map(keyIn))
    const others = this.#items.filter((item) => isCall(item) && !listed.has(keyIn(item)))
    return others.length === 0 ? result : { ...result, asked: [...this.#listed, ...others] }
  }
}
