// A support agent with a scripted model. Every step of its run is recorded.
//   TACHO_API_KEY=… scripts/node examples/agents/support-agent.ts
import { Tacho } from '@tacho/sdk'

const tacho = new Tacho({ agentId: 'support', agentName: 'Support agent' })

type Reply = { tool: 'find_order'; order: string } | { text: string }

/** Simulates a model with fixed answers. */
function model(messages: readonly string[]): Reply {
  return messages.length === 1 ? { tool: 'find_order', order: '1007' } : { text: 'Your order 1007 arrives tomorrow.' }
}

const findOrder = tacho.guard(async ({ order }: { order: string }) => ({ order, status: 'in transit' }), {
  name: 'find_order',
})

const answer = await tacho.run({ sessionId: 'conversation-1' }, async (run) => {
  const question = 'Where is my order 1007?'
  run.userInput(question)
  const messages = [question]
  for (;;) {
    const start = Date.now()
    const reply = model(messages)
    const usage = { promptTokens: 40 * messages.length, completionTokens: 12 }
    run.llmCall({ model: 'scripted', latency: Date.now() - start, usage, cost: 0.0002, messages, output: reply })
    if ('text' in reply) return reply.text
    messages.push(JSON.stringify(await findOrder({ order: reply.order })))
  }
})

console.log(answer)
await tacho.shutdown()
