/** An agent for many runs. For each message of the user, it asks a model with a deployed prompt. Its tools are guarded. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Tacho } from '@tacho/sdk'

interface Message {
  role: string
  content?: string | null
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

const [log = '', waitMs = '0', model = 'gpt-5'] = process.argv.slice(2)
const { TACHO_REPLAY_INPUT: input = '', TACHO_REPLAY_INPUTS: all, OPENAI_BASE_URL: base } = process.env
const inputs = all === undefined ? [input] : (JSON.parse(all) as string[])
if (log) appendFileSync(log, `begun ${inputs[0]}\n`)
const tacho = new Tacho({ agentName: 'Desk' })
await tacho.configuration.ready()

async function answered(messages: Message[]): Promise<Message> {
  const reply = await fetch(`${base}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages }),
  })
  if (!reply.ok) throw new Error(await reply.text())
  const { choices, usage } = (await reply.json()) as { choices: { message: Message }[]; usage: Record<string, number> }
  const message = choices[0]?.message ?? { role: 'assistant' }
  run.llmCall({ model, messages: [...messages], output: message, usage, latency: 20 })
  return message
}

const run = tacho.startRun()
await run.within(async () => {
  const messages: Message[] = [{ role: 'system', content: tacho.prompt('greeting', 'Be brief.').content }]
  try {
    for (const content of inputs) {
      run.userInput(content)
      messages.push({ role: 'user', content })
      for (;;) {
        const message = await answered(messages)
        messages.push(message)
        if (!message.tool_calls?.length) break
        for (const { id, function: called } of message.tool_calls) {
          const executed = (_input: unknown) => appendFileSync(log, `executed ${called.name}\n`)
          const act = tacho.guard(executed, { name: called.name })
          const output = await act(JSON.parse(called.arguments))
          messages.push({ role: 'tool', content: String(output), tool_call_id: id })
        }
      }
    }
    await sleep(Number(waitMs))
    const isSolved = !String(messages.at(-1)?.content).includes('cannot')
    run.score('politeness', isSolved ? 1 : 0.5)
    if (log) appendFileSync(log, `ended ${inputs[0]}\n`)
    run.end(isSolved ? 'COMPLETED' : 'FAILED')
  } catch (error) {
    run.end('FAILED', { error })
  }
})
await tacho.shutdown()
