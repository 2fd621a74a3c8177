/** Policies of an imaginary shop, and the same rules in handwritten JavaScript. */
import type { Facts } from '@tacho/policy/language/variables.ts'

export interface SamplePolicy {
  policyId: string
  condition: string
  severity: string
  action: string
  byHand: (facts: Facts) => boolean
}

const input = (facts: Facts, name: string): unknown => facts.tool.input?.[name]
const number = (facts: Facts, name: string): number => Number(input(facts, name) ?? 0)
const text = (facts: Facts, name: string): string => (input(facts, name) ?? '') as string

export const POLICIES: readonly SamplePolicy[] = [
  {
    policyId: 'no-deletion',
    condition: 'tool.name in ["delete_account", "delete_order"]',
    severity: 'CRITICAL',
    action: 'BLOCK',
    byHand: ({ tool }) => ['delete_account', 'delete_order'].includes(tool.name),
  },
  {
    policyId: 'large-refund',
    condition: 'tool.name == "refund_order" && tool.input.amount > 500.0',
    severity: 'HIGH',
    action: 'REQUIRE_APPROVAL',
    byHand: (facts) => facts.tool.name === 'refund_order' && number(facts, 'amount') > 500,
  },
  {
    policyId: 'foreign-currency',
    condition: 'tool.name == "refund_order" && !(tool.input.currency in ["EUR", "USD"])',
    severity: 'MEDIUM',
    action: 'REQUIRE_APPROVAL',
    byHand: (facts) => facts.tool.name === 'refund_order' && !['EUR', 'USD'].includes(text(facts, 'currency')),
  },
  {
    policyId: 'mail-outside',
    condition: 'tool.name == "send_mail" && !tool.input.to.endsWith("@example.com")',
    severity: 'HIGH',
    action: 'REQUIRE_APPROVAL',
    byHand: (facts) => facts.tool.name === 'send_mail' && !text(facts, 'to').endsWith('@example.com'),
  },
  {
    policyId: 'card-number',
    condition: 'has(tool.input.text) && tool.input.text.matches("[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{4}")',
    severity: 'CRITICAL',
    action: 'BLOCK',
    byHand: (facts) => /[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{4}/.test(text(facts, 'text')),
  },
  {
    policyId: 'costly-run',
    condition: 'run.cost > 2.0',
    severity: 'MEDIUM',
    action: 'WARN',
    byHand: ({ run }) => (run?.cost ?? 0) > 2,
  },
  {
    policyId: 'endless-run',
    condition: 'run.toolCalls >= 50 || run.totalTokens > 200000',
    severity: 'HIGH',
    action: 'BLOCK',
    byHand: ({ run }) => (run?.toolCalls ?? 0) >= 50 || (run?.totalTokens ?? 0) > 200_000,
  },
  {
    policyId: 'risk-signals',
    condition: 'risk.signals.exists(signal, signal == "prompt_injection")',
    severity: 'CRITICAL',
    action: 'BLOCK',
    byHand: ({ risk }) => risk?.signals?.some((signal) => signal === 'prompt_injection') ?? false,
  },
  {
    policyId: 'test-agents',
    condition: 'agent.name.startsWith("test-") && tool.name != "search"',
    severity: 'LOW',
    action: 'WARN',
    byHand: ({ agent, tool }) => (agent?.name ?? '').startsWith('test-') && tool.name !== 'search',
  },
  {
    policyId: 'many-items',
    condition: 'has(tool.input.items) && size(tool.input.items) > 20',
    severity: 'MEDIUM',
    action: 'REQUIRE_APPROVAL',
    byHand: (facts) => ((input(facts, 'items') as unknown[] | undefined)?.length ?? 0) > 20,
  },
]

/** Tool calls that sometimes match a policy. */
export function sampleFacts(n: number): Facts {
  const name = ['search', 'refund_order', 'send_mail', 'read_order'][n % 4] ?? 'search'
  return {
    tool: {
      name,
      input: {
        orderId: `order-${n}`,
        amount: (n * 37) % 800,
        currency: 'EUR',
        to: n % 8 === 2 ? 'someone@elsewhere.org' : 'customer@example.com',
        text: 'The order arrived damaged, and the customer would like the money back.',
        items: [{ sku: 'A-1', count: 1 }],
      },
    },
    agent: { id: 'agent-1', name: 'Support agent' },
    run: { id: `run-${n}`, cost: 0.4, totalTokens: 12_000, toolCalls: n % 20 },
    session: { id: 'session-1' },
    risk: { signals: ['long_conversation'] },
    now: 1_780_000_000_000 + n,
  }
}
