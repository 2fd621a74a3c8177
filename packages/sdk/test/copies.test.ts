/** A client and integrations from different copies of the SDK: two folders, both module formats, separate module registries. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { placeSdk } from './packed-sdk.ts'
import type * as Ai from '../src/integrations/ai.ts'
import type * as LangChain from '../src/integrations/langchain.ts'
import type * as OpenAi from '../src/integrations/openai.ts'
import type * as Agents from '../src/integrations/openai-agents.ts'
import type * as Sdk from '../src/index.ts'
import type * as Testing from '../src/testing/fake-tacho.ts'

interface Copy {
  readonly sdk: typeof Sdk
  readonly testing: typeof Testing
  readonly ai: typeof Ai
  readonly openai: typeof OpenAi
  readonly langchain: typeof LangChain
  readonly agents: typeof Agents
}

const ENTRIES = {
  sdk: '.',
  testing: './testing',
  ai: './ai',
  openai: './openai',
  langchain: './langchain',
  agents: './openai-agents',
}
const COPIES = ['ES modules', 'ES modules of another folder', 'CommonJS', 'a registry of its own']
const copies = new Map<string, Copy>()

let folder: string
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tacho-copies-'))
  await placeSdk(folder)
  const [first, second] = ['package', 'other'].map((name) => path.join(folder, name)) as [string, string]
  cpSync(first, second, { recursive: true })
  const manifest = JSON.parse(readFileSync(path.join(first, 'package.json'), 'utf8')) as {
    exports: Record<string, { require: { default: string }; default: { default: string } }>
  }
  async function copyOf(form: 'require' | 'default', load: (entry: string) => unknown): Promise<Copy> {
    const modules = Object.entries(ENTRIES).map(async ([name, entry]) => {
      return [name, await load(manifest.exports[entry]?.[form].default ?? '')] as const
    })
    return Object.fromEntries(await Promise.all(modules)) as unknown as Copy
  }
  const imported = (at: string) => (entry: string) => import(pathToFileURL(path.join(at, entry)).href)
  const require = createRequire(import.meta.url)
  const required = (entry: string): unknown => require(path.join(first, entry))
  const [esm, other, commonJs, registry] = COPIES as [string, string, string, string]
  copies.set(esm, await copyOf('default', imported(first)))
  copies.set(other, await copyOf('default', imported(second)))
  copies.set(commonJs, await copyOf('require', required))
  // Empty the module cache, as Jest does for each test file.
  for (const file of Object.keys(require.cache)) if (file.startsWith(folder)) delete require.cache[file]
  copies.set(registry, await copyOf('require', required))
})
after(() => rmSync(folder, { recursive: true, force: true }))

const policies = [
  {
    policyId: 'no-refunds',
    name: 'No refunds',
    version: '1',
    condition: 'tool.name == "refund" && tool.input.amount > 100.0',
    severity: 'HIGH',
    action: 'BLOCK',
  },
] as const

const model = () => ({
  modelId: 'm',
  specificationVersion: 'v3',
  doGenerate: async (...given: unknown[]) => ({ given, content: [{ type: 'text', text: 'Hello' }], usage: {} }),
  doStream: async (_options: unknown) => ({ stream: new ReadableStream({ start: (stream) => stream.close() }) }),
})

for (const ofClient of COPIES) {
  for (const ofIntegrations of COPIES) {
    test(`a client of ${ofClient}, integrations of ${ofIntegrations}`, async () => {
      const { sdk, testing } = copies.get(ofClient) as Copy
      const theirs = copies.get(ofIntegrations) as Copy
      const fake = testing.fakeTacho({ deployedPolicies: policies })
      const { tacho } = fake
      const recorded = theirs.ai.recordModel(model(), tacho)
      const { refund } = theirs.ai.guardTools(
        { refund: { execute: async ({ amount }: { amount: number }) => amount } },
        tacho,
      )
      const completions = { create: async (...given: unknown[]) => ({ given, model: 'gpt', choices: [] }) }
      const client = theirs.openai.recordClient({ chat: { completions } }, tacho)
      // Two copies wrap the same client. Each call must be recorded once.
      copies.get(ofClient)?.openai.recordClient(client, tacho)
      const options = { prompt: [] }
      await tacho.run({ runId: 'one' }, async () => {
        const { given } = await recorded.doGenerate(options)
        assert.equal(given[0], options)
        const body = { model: 'gpt', messages: [] }
        const answer = await client.chat.completions.create(body, { timeout: 1 })
        assert.deepEqual(answer.given, [body, { timeout: 1 }])
        assert.equal(await refund.execute({ amount: 1 }), 1)
        const refused = await refund.execute({ amount: 500 }).catch((error: unknown) => error)
        const { cause } = refused as Error
        assert.ok(cause instanceof sdk.ToolBlockedError)
        assert.ok(cause instanceof theirs.sdk.ToolBlockedError)
        assert.equal(cause.code, 'policy')
        const handler = theirs.langchain.recordCalls(tacho)
        handler.handleChatModelStart({ kwargs: { model: 'chain' } }, [[]], 'call')
        handler.handleLLMEnd({ generations: [] }, 'call')
        const processor = theirs.agents.recordTraces(tacho)
        await processor.onTraceStart({ traceId: 't' })
        await processor.onSpanStart({ spanId: 's', traceId: 't', spanData: { type: 'generation', model: 'agents' } })
        await processor.onSpanEnd({ spanId: 's', traceId: 't', spanData: { type: 'generation', model: 'agents' } })
      })
      const events = await fake.events()
      assert.ok(events.every(({ runId }) => runId === 'one'))
      const models = events.filter(({ eventType }) => eventType === 'LLM_CALL').map(({ label }) => label)
      assert.deepEqual(models, ['m', 'gpt', 'chain', 'agents'])
      const calls = events.filter(({ eventType }) => eventType === 'TOOL_CALL')
      assert.deepEqual(
        calls.map(({ payload }) => [payload['toolName'], payload['output']]),
        [['refund', 1]],
      )
      assert.deepEqual(await fake.decisions().then((made) => made.map(({ action }) => action)), ['BLOCK'])
      await fake.close()
    })
  }
}

test('a tool that is guarded by one copy is guarded for the other, and a model call inside it is an agent', async () => {
  const [first, second] = COPIES.map((name) => copies.get(name)) as [Copy, Copy]
  const fake = first.testing.fakeTacho({ guard: { whenUnconfigured: 'allow' } })
  const recorded = second.ai.recordModel(model(), fake.tacho)
  const { helper } = first.ai.guardTools(
    { helper: { execute: async (_input: object) => recorded.doGenerate({ prompt: [], tools: [{ name: 'search' }] }) } },
    fake.tacho,
  )
  await fake.tacho.run(() => helper.execute({}))
  const handoff = await fake.assertEvent('HANDOFF', { to: 'helper' })
  assert.equal(handoff.payload['from'], 'agent')
  await fake.close()
})

test('a class that extends ToolBlockedError knows only its own errors', () => {
  const { ToolBlockedError } = (copies.get('ES modules') as Copy).sdk
  class OurError extends ToolBlockedError {}
  const facts = { toolName: 't', inputHash: null, policyIds: [], approvalId: null, decisionReason: null }
  const error = new ToolBlockedError({ code: 'policy', reason: null, policyMessage: null, ...facts }, 'no')
  assert.ok(error instanceof ToolBlockedError && error instanceof Error)
  assert.ok(!(error instanceof OurError))
  assert.ok(!(new Error('other') instanceof ToolBlockedError) && !((null as unknown) instanceof ToolBlockedError))
})

test('a client of a version that does not fit: the calls go through, and one warning says why', async (t) => {
  const warn = t.mock.method(console, 'warn', () => undefined)
  const { ai, openai, langchain, agents } = copies.get('ES modules') as Copy
  const future = { guardedCall: () => undefined } as never
  const given = model()
  const recorded = ai.recordModel(given, future)
  assert.deepEqual((await recorded.doGenerate({ prompt: [] })).given, [{ prompt: [] }])
  const client = { chat: { completions: { create: async (body: unknown) => body } } }
  assert.equal(await openai.recordClient(client, future).chat.completions.create('body'), 'body')
  langchain.recordCalls(future).handleLLMStart({}, [], 'call')
  await agents.recordTraces(future).onTraceStart({ traceId: 't' })
  assert.equal(warn.mock.callCount(), 3)
  assert.match(String(warn.mock.calls[0]?.arguments[0]), /^tacho: Model calls are not recorded: /)
  // A guard that cannot decide must refuse.
  assert.throws(() => ai.guardTools({ tool: { execute: async () => 1 } }, future), /another version of @tacho\/sdk/)
})

test('a printed client shows neither the key nor what integrations share', async () => {
  const { sdk } = copies.get('ES modules') as Copy
  const { inspect } = await import('node:util')
  const tacho = new sdk.Tacho({ apiKey: 'secret-key', onDiagnostic: () => undefined })
  assert.doesNotMatch(inspect(tacho, { showHidden: true, depth: 12 }), /secret-key/)
  assert.deepEqual(Object.keys(tacho), ['configuration'])
  await tacho.shutdown(0)
})
