// A refund tool that needs approval for large amounts. Decide in another terminal: tacho approvals watch
//   TACHO_API_KEY=… scripts/node examples/agents/guarded-refund.ts 250
import { Tacho, ToolBlockedError } from '@tacho/sdk'

const tacho = new Tacho({
  agentId: 'support',
  agentName: 'Support agent',
  guard: {
    // These apply in addition to the policies that operators deploy.
    policies: [
      {
        policyId: 'large-refunds',
        name: 'Large refunds',
        version: '1',
        condition: 'tool.name == "refund" && tool.input.amount > 100.0',
        severity: 'HIGH',
        action: 'REQUIRE_APPROVAL',
      },
    ],
    approvalTimeoutMs: 120_000,
  },
})

const refund = tacho.guard(
  async ({ order, amount }: { order: string; amount: number }) => `Refunded ${amount} for order ${order}.`,
  { name: 'refund' },
)

const amount = Number(process.argv[2] ?? 250)
const answer = await tacho.run(async (run) => {
  run.userInput(`Please refund ${amount} for order 1007.`)
  try {
    return await refund({ order: '1007', amount })
  } catch (error) {
    // The explanation for the model, which it can pass on to the user.
    if (error instanceof ToolBlockedError) return error.modelText
    throw error
  }
})

console.log(answer)
await tacho.shutdown()
