/**
 * Twenty-three policies and two hundred calls with their decisions. Everything that guards tools must decide like this: SDKs, the MCP
 * guard, the hooks of coding agents, and simulation. The facts are those that all of them have: the tool, its input, the agent.
 */
import fc from 'fast-check'
import { decide, type Action, type Policy } from '../src/decide.ts'

const SEED = 20_261_122
const CALLS = 200

/** The file decisions.json. */
export interface DecisionVectors {
  agent: { id: string; name: string }
  policies: Policy[]
  calls: { toolName: string; input: Record<string, unknown>; action: Action; policyIds: string[] }[]
}

/** Without `onError` the severity decides, as in versions stored before it existed. */
const POLICIES: readonly [condition: string, severity: string, action: Action, onError?: 'act' | 'ignore'][] = [
  ['tool.name == "delete_account"', 'CRITICAL', 'BLOCK'],
  ['tool.name.startsWith("drop_")', 'HIGH', 'BLOCK'],
  ['tool.name == "refund" && tool.input.amount > 1000', 'HIGH', 'REQUIRE_APPROVAL'],
  ['tool.name == "refund" && has(tool.input.amount) && tool.input.amount > 100.0', 'MEDIUM', 'WARN'],
  ['has(tool.input.to) && !tool.input.to.endsWith("@example.com")', 'HIGH', 'REQUIRE_APPROVAL'],
  ['has(tool.input.path) && tool.input.path.contains("..")', 'CRITICAL', 'BLOCK'],
  ['has(tool.input.path) && tool.input.path.matches(r"\\.(env|pem)$")', 'HIGH', 'BLOCK'],
  ['tool.name == "write_file" && size(tool.input.content) > 20', 'LOW', 'WARN'],
  ['tool.name == "write_file" && size(tool.input.content) > 30', 'CRITICAL', 'REQUIRE_APPROVAL'],
  [
    'has(tool.input.items) && tool.input.items.exists(i, i.price * 2.0 > 500.0)',
    'MEDIUM',
    'REQUIRE_APPROVAL',
    'ignore',
  ],
  ['has(tool.input.items) && tool.input.items.all(i, i.price < 10.0)', 'LOW', 'ALLOW'],
  ['has(tool.input.items) && size(tool.input.items) == 0', 'MEDIUM', 'WARN'],
  ['tool.input.amount == 7', 'LOW', 'BLOCK', 'ignore'],
  ['has(tool.input.note) && tool.input.note.lowerAscii().contains("urgent")', 'MEDIUM', 'WARN'],
  ['has(tool.input.note) && size(tool.input.note) == 3', 'MEDIUM', 'WARN'],
  [
    'tool.name in ["refund", "credit"] && tool.input.amount > {"refund": 900.0, "credit": 90.0}[tool.name]',
    'MEDIUM',
    'WARN',
  ],
  ['agent.id == "claude-code" && tool.name == "credit"', 'LOW', 'ALLOW'],
  ['agent.name != "claude-code"', 'CRITICAL', 'BLOCK'],
  ['has(tool.input.at) && timestamp(tool.input.at) > timestamp("2026-06-01T00:00:00Z")', 'HIGH', 'WARN'],
  ['has(tool.input.flag) && tool.input.flag == true', 'MEDIUM', 'REQUIRE_APPROVAL', 'ignore'],
  ['tool.name == "order" && tool.input.amount > 500.0', 'LOW', 'REQUIRE_APPROVAL', 'act'],
  ['tool.name == "credit" && tool.input.note.contains("urgent")', 'CRITICAL', 'BLOCK', 'ignore'],
  ['tool.name == "read_page" && tool.input.amount > 500.0', 'MEDIUM', 'WARN', 'act'],
]

const TOOLS = [
  'refund',
  'refund',
  'credit',
  'write_file',
  'send_email',
  'order',
  'drop_table',
  'delete_account',
  'read_page',
]

const amount = fc.oneof(
  fc.constantFrom(7, 7.5, 100, 900.01, 1000, 1000.5, 9007199254740991, -1, 0),
  fc.constant('12'),
  fc.constant(null),
)
const FIELDS: Record<string, fc.Arbitrary<unknown>> = {
  amount,
  to: fc.constantFrom('ada@example.com', 'bob@example.com', 'eve@example.org', 'ADA@EXAMPLE.COM'),
  path: fc.constantFrom('notes.txt', 'a.env.txt', 'docs/a.md', '../etc/passwd', 'keys/server.pem', 'ключ.pem'),
  content: fc.oneof(
    fc.constant('x'.repeat(25)),
    fc.string({ maxLength: 45 }),
    fc.string({ unit: 'grapheme', maxLength: 24 }),
  ),
  items: fc.array(fc.record({ price: fc.constantFrom(1.5, 9.99, 10, 249.5, 250.5, 300) }), { maxLength: 4 }),
  note: fc.constantFrom('URGENT: now', 'urgent', 'Urgent ☂', 'abc', '😀é1', 'quiet'),
  at: fc.constantFrom('2026-06-01T00:00:00Z', '2026-07-01T12:00:00+02:00', '2026-01-01T00:00:00Z', 'soon'),
  flag: fc.constantFrom(true, false, 'true', 1),
}

const input = fc
  .subarray(Object.keys(FIELDS), { maxLength: 3 })
  .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, FIELDS[name] ?? fc.constant(null)]))))

export function decisionVectors(): DecisionVectors {
  const agent = { id: 'claude-code', name: 'claude-code' }
  const policies = POLICIES.map(([condition, severity, action, onError], index) => {
    const policyId = `rule-${String(index + 1).padStart(2, '0')}`
    return { policyId, name: policyId, version: '1', condition, severity, action, ...(onError && { onError }) }
  })
  const drawn = fc.sample(fc.record({ toolName: fc.constantFrom(...TOOLS), input }), { numRuns: 4 * CALLS, seed: SEED })
  // Each call once: decisions are found again by the hash of tool and input. Plain copies, as they will be read.
  const texts = [...new Set(drawn.map((call) => JSON.stringify(call)))].slice(0, CALLS)
  const calls = texts.map((text) => {
    const call = JSON.parse(text) as { toolName: string; input: Record<string, unknown> }
    const { action, matched } = decide(policies, { tool: { name: call.toolName, input: call.input }, agent, now: 0 })
    return { ...call, action, policyIds: matched.map(({ policyId }) => policyId) }
  })
  return { agent, policies, calls }
}
