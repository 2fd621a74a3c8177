const { Tacho, ToolBlockedError } = require('@tacho/sdk')
const { recordClient } = require('@tacho/sdk/openai')

// A slow machine must not be taken for a service without policies.
const tacho = new Tacho({ agentName: 'common-js', guard: { configurationWaitMs: 60_000 } })
const refund = tacho.guard(async (amount) => `paid ${amount}`, { name: 'refund' })

async function main() {
  const answer = await tacho.run(() => refund(100).catch((error) => error instanceof ToolBlockedError && error.code))
  // A program that also imports has one SDK where Node can require ES modules.
  const esm = await import('@tacho/sdk')
  console.log(JSON.stringify({ answer, isOne: esm.Tacho === Tacho, recordClient: typeof recordClient }))
}

// The process delivers at its end.
void main()
