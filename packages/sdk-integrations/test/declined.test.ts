/** A person declines a call in the framework's own approval. The record says that the call never ran, not that it failed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOpenAI } from '@ai-sdk/openai'
import { Command, MemorySaver } from '@langchain/langgraph'
import { ChatOpenAI } from '@langchain/openai'
import { Agent as MastraAgent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { Mastra } from '@mastra/core/mastra'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { Agent, OpenAIProvider, Runner, setTraceProcessors, tool as agentsTool } from '@openai/agents'
import * as ai from '@tacho/sdk/ai'
import * as langchain from '@tacho/sdk/langchain'
import * as mastra from '@tacho/sdk/mastra'
import * as agents from '@tacho/sdk/openai-agents'
import { generateText, isStepCount, tool, type ModelMessage } from 'ai'
import { createAgent, humanInTheLoopMiddleware, tool as langchainTool } from 'langchain'
import { AMOUNT, ASKED, DONE } from './matrix/life.ts'
import { openStage, TOOL, type Stage } from './matrix/matrix.ts'

process.env['LANGSMITH_TRACING'] = 'false'

type InRun = <T>(act: () => Promise<T>) => Promise<T>
/** Without `reason`, the framework uses its own text. `inRun` runs the request that asks, and then the one with the answer. */
type Decline = (stage: Stage, reason: string | undefined, inRun: InRun) => Promise<unknown>

const modelOf = ({ model, tacho }: Stage) =>
  ai.recordModel(createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }).chat('gpt-5'), tacho)

const aiSdk: Decline = async (stage, reason, inRun) => {
  const options = {
    model: modelOf(stage),
    tools: ai.guardTools(
      { [TOOL]: tool({ inputSchema: AMOUNT, execute: async (input) => stage.act(input) }) },
      stage.tacho,
    ),
    toolApproval: { [TOOL]: 'user-approval' as const },
    stopWhen: isStepCount(3),
  }
  const prompt: ModelMessage[] = [{ role: 'user', content: 'Act' }]
  const { content, response } = await inRun(() => generateText({ ...options, prompt }))
  const request = content.find((part) => part.type === 'tool-approval-request')
  assert.ok(request)
  const answer = { type: 'tool-approval-response' as const, approvalId: request.approvalId, approved: false }
  const declined = { ...answer, ...(reason !== undefined && { reason }) }
  const after: ModelMessage[] = [...prompt, ...response.messages, { role: 'tool', content: [declined] }]
  await inRun(() => generateText({ ...options, prompt: after }))
}

const ofMastra: Decline = async (stage, reason, inRun) => {
  const execute = async (input: unknown) => stage.act(input)
  const made = mastra.guardTool(
    createTool,
    stage.tacho,
  )({ id: TOOL, description: 'Acts', inputSchema: AMOUNT, execute })
  const agent = new MastraAgent({
    id: 'agent',
    name: 'Agent',
    instructions: 'Be brief',
    model: modelOf(stage) as MastraModelConfig,
    tools: { [TOOL]: made },
  })
  new Mastra({ agents: { agent }, storage: new InMemoryStore(), logger: false })
  let toolCallId = ''
  const { runId } = await inRun(async () => {
    const stream = await agent.stream('Act', { requireToolApproval: true })
    for await (const chunk of stream.fullStream)
      if (chunk.type === 'tool-call-approval') toolCallId = chunk.payload.toolCallId
    return { runId: stream.runId }
  })
  await inRun(async () => {
    const after = await agent.declineToolCall({ runId, toolCallId, ...(reason !== undefined && { reason }) } as never)
    for await (const _ of after.fullStream);
  })
}

const ofLangchain: Decline = async (stage, message, inRun) => {
  const acting = langchainTool(async (input) => stage.act(input), { name: TOOL, description: 'Acts', schema: AMOUNT })
  const agent = createAgent({
    model: new ChatOpenAI({ model: 'gpt-5', apiKey: 'key', configuration: { baseURL: `${stage.model.url}/v1` } }),
    tools: langchain.guardTools([acting], stage.tacho),
    ...({ middleware: [humanInTheLoopMiddleware({ interruptOn: { [TOOL]: true } } as never)] } as object),
    checkpointer: new MemorySaver(),
  })
  const config = { configurable: { thread_id: '1' }, callbacks: [langchain.recordCalls(stage.tacho)] }
  await inRun(() => agent.invoke({ messages: [{ role: 'user', content: 'Act' }] }, config))
  const decision = { type: 'reject', ...(message !== undefined && { message }) }
  await inRun(() => agent.invoke(new Command({ resume: { decisions: [decision] } }) as never, config))
}

const ofAgents: Decline = async (stage, message, inRun) => {
  setTraceProcessors([agents.recordTraces(stage.tacho)])
  const execute = async (input: unknown) => stage.act(input)
  const options = { name: TOOL, description: 'Acts', parameters: AMOUNT, needsApproval: true, execute }
  const made = agents.guardTool(agentsTool, stage.tacho)(options as never)
  const agent = new Agent({ name: 'Agent', model: 'gpt-5', tools: [made] })
  const provider = new OpenAIProvider({ apiKey: 'key', baseURL: `${stage.model.url}/v1`, useResponses: false })
  const runner = new Runner({ modelProvider: provider })
  const { state, interruptions } = await inRun(() => runner.run(agent, 'Act'))
  for (const item of interruptions) state.reject(item, message === undefined ? {} : { message })
  await inRun(() => runner.run(agent, state))
}

const WAYS = { 'AI SDK': aiSdk, Mastra: ofMastra, LangChain: ofLangchain, 'OpenAI Agents': ofAgents }

for (const [name, decline] of Object.entries(WAYS)) {
  for (const reason of [undefined, 'Too expensive for a Tuesday']) {
    test(`${name}: a declined call never ran, and opens no issue${reason === undefined ? '' : ', with words of its own'}`, async (t) => {
      const stage = await openStage(t, [ASKED, DONE])
      await stage.tacho.run(async () => void (await decline(stage, reason, (act) => act())))
      assert.deepEqual(stage.gotten, [])
      const { payload } = await stage.fake.assertEvent('TOOL_CALL', { toolName: TOOL, outcome: 'never_ran' })
      assert.deepEqual([payload['reasonCode'], payload['toolCallId']], ['declined', 'call_1_0'])
      if (reason !== undefined) assert.match(JSON.stringify(payload['error']), /Too expensive/)
      assert.deepEqual(await stage.fake.issues(), [])
    })
  }
}

for (const [name, decline] of Object.entries(WAYS)) {
  test(`${name}: a run whose call waits for a person says so, and its denial in a later run is an event of it`, async (t) => {
    const stage = await openStage(t, [ASKED, DONE])
    let number = 0
    await decline(stage, undefined, async (act) => {
      const result = await stage.tacho.run({ runId: `request ${++number}` }, act)
      if (number === 1) await stage.fake.assertEvent('WAITING', { waitingFor: 'approval' })
      return result
    })
    const events = await stage.fake.events()
    const of = (runId: string) => events.filter((event) => event.runId === runId)
    assert.deepEqual(
      of('request 1').flatMap(({ eventType, payload }) =>
        ['WAITING', 'TOOL_CALL', 'SESSION_OUTCOME'].includes(eventType)
          ? [[eventType, payload['toolName'], payload['waitingFor'] ?? payload['reasonCode']]]
          : [],
      ),
      [
        ['WAITING', TOOL, 'approval'],
        ['TOOL_CALL', TOOL, 'declined'],
        ['SESSION_OUTCOME', undefined, undefined],
      ],
    )
    assert.equal(
      of('request 2').find(({ eventType }) => eventType === 'SESSION_OUTCOME')?.payload['status'],
      'COMPLETED',
    )
  })
}
