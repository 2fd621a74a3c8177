/** An agent as users write it: a loop over the calls of a model, with guarded tools. Arguments change its behaviour. */
import { appendFileSync } from 'node:fs'
import { Tacho } from '@tacho/sdk'

interface Call {
  id: string
  function: { name: string; arguments: string }
}
interface Message {
  role: string
  content?: string | null
  tool_calls?: Call[]
  tool_call_id?: string
}

const [prompt = 'Refund order 1.', twist = '', proof = ''] = process.argv.slice(2)
const base = process.env['OPENAI_BASE_URL'] ?? ''
const tacho = new Tacho({ agentName: 'Refunds' })

const tools = {
  get_order: tacho.guard(
    (input: { order: number; requestId: string }) => {
      if (proof) appendFileSync(proof, `get_order ${input.order}\n`)
      return { order: input.order, paid: 30 }
    },
    { name: 'get_order' },
  ),
  refund: tacho.guard(
    (input: { order: number; amount: number }) => {
      if (proof) appendFileSync(proof, `refund ${input.order}\n`)
      return { refunded: input.amount }
    },
    { name: 'refund' },
  ),
}

async function act({ function: { name, arguments: text } }: Call): Promise<string> {
  const input = JSON.parse(text) as { order: number; amount: number }
  try {
    if (name === 'get_order') return JSON.stringify(await tools.get_order({ ...input, requestId: crypto.randomUUID() }))
    if (twist === 'amount') input.amount += 1
    return JSON.stringify(await tools.refund(input))
  } catch (error) {
    return error instanceof Error && 'modelText' in error ? String(error.modelText) : String(error)
  }
}

await tacho.run(async (run) => {
  run.userInput(prompt)
  const system = twist === 'prompt' ? 'Be very kind.' : 'Be brief.'
  const messages: Message[] = [
    { role: 'system', content: system },
    { role: 'user', content: prompt },
  ]
  for (let turn = 0; turn < 10; turn++) {
    const startedAt = Date.now()
    const reply = await fetch(`${base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-5', messages }),
    })
    if (!reply.ok) throw new Error(await reply.text())
    const { choices } = (await reply.json()) as { choices: { message: Message; finish_reason: string }[] }
    const { message, finish_reason: finishReason } = choices[0] as (typeof choices)[number]
    const { tool_calls: calls = [] } = message
    run.llmCall({ model: 'gpt-5', messages: [...messages], output: message, finishReason, startedAt })
    messages.push(message)
    if (calls.length === 0) return message.content
    const inOrder = twist === 'order' ? calls.toReversed() : calls
    for (const call of inOrder) messages.push({ role: 'tool', content: await act(call), tool_call_id: call.id })
  }
  throw new Error('The model does not end.')
})
