// A prompt that operators can change without a release:
//   tacho prompts create greeting --file greeting.txt && tacho prompts deploy greeting
//   TACHO_API_KEY=… scripts/node examples/agents/deployed-prompt.ts
import { Tacho } from '@tacho/sdk'

const tacho = new Tacho({ agentId: 'greeter', agentName: 'Greeter' })

// Without this, the first prompt would be the fallback.
await tacho.configuration.ready()

await tacho.run((run) => {
  const prompt = tacho.prompt('greeting', 'Greet {{customer}} in one sentence.')
  const text = prompt.render({ customer: 'Ada' })
  // Recorded with the promptVersionId of the deployed version.
  run.llmCall({ model: 'scripted', messages: [text], output: 'Hello Ada!' })
  console.log(`${prompt.isFallback ? 'fallback' : `version ${prompt.version}`}: ${text}`)
})

await tacho.shutdown()
