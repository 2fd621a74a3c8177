const { Tacho, ToolBlockedError } = require('@tacho/sdk')
const { recordClient } = require('@tacho/sdk/openai')

// On a slow machine, the client must not give up waiting for its policies.
const tacho = new Tacho({ agentName: 'common-js', guard: { configurationWaitMs: 60_000 } })
const refund = tacho.guard(async (amount) => `paid ${amount}`, { name: 'refund' })

async function main() {
  const answer = await tacho.run(() => refund(100).catch((error) => error instanceof ToolBlockedError && error.code))
  // If Node can require ES modules, `require` and `import` give the same SDK.
  const esm = await import('@tacho/sdk')
  console.log(JSON.stringify({ answer, isOne: esm.Tacho === Tacho, recordClient: typeof recordClient }))
}

// The SDK delivers when the process ends.
void main()
