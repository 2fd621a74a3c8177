/** Builds one run, event by event, with its own clock. Pure. */
import { hash } from 'node:crypto'
import type { EventInput } from '@tacho/contract/record/event.ts'
import type { RunOutcome } from '@tacho/contract/runs/run.ts'

export interface Agent {
  id: string
  name: string
}

export interface DemoRun {
  runId: string
  about: string
  events: EventInput[]
}

export interface Story {
  system(text: string): void
  user(text: string): void
  /** A model call that returns text, calls a tool, or both. Returns its span id, for child events. */
  model(output: string | ToolPlan, promptTokens?: number): string
  /** `linked`: the input hash and approval id of a guarded call. */
  tool(
    plan: ToolPlan,
    result: { output: unknown } | { error: string },
    parentSpanId?: string,
    linked?: Record<string, unknown>,
  ): void
  step(label: string, text: string): void
  policy(action: string, toolName: string, policyId: string, decided?: Record<string, unknown>): void
  error(message: string, code: string): void
  outcome(status: RunOutcome): void
  wait(ms: number): void
}

export interface ToolPlan {
  toolName: string
  input: Record<string, unknown>
}

const MODEL = 'gpt-4.1-mini'
/** Prices of one token, in units of 1e-9. */
const PROMPT_NANOS = 400
const COMPLETION_NANOS = 1_600
const CLIENT_ID = 'tacho-demo'
/** Maximum number of messages in a model call, apart from the first. */
const MESSAGES_SENT = 20

type Message = Record<'role', string> & Record<string, unknown>

/** Starts at time 0; `placed` moves a finished run to its real time. */
export function startStory(
  identity: {
    runId: string
    sessionId: string | null
    agent: Agent
    promptVersionId?: string | undefined
    /** Replaces the plot's system prompt. */
    systemPrompt?: string | undefined
  },
  random: Chance,
  events: EventInput[],
): Story {
  let time = 0
  let context = 400
  let spans = 0
  const messages: Message[] = []

  const add = (eventType: string, label: string, payload: Record<string, unknown>, parentSpanId?: string): string => {
    spans += 1
    const { promptVersionId } = identity
    const spanId = `span-${spans}`
    events.push({
      eventId: `${identity.runId}-${spans}`,
      clientId: CLIENT_ID,
      runId: identity.runId,
      sessionId: identity.sessionId,
      agentId: identity.agent.id,
      agentName: identity.agent.name,
      eventType,
      label,
      timestamp: time,
      payload: promptVersionId === undefined ? payload : { ...payload, promptVersionId },
      spanId,
      ...(parentSpanId === undefined ? {} : { parentSpanId }),
    })
    return spanId
  }

  return {
    system(text) {
      const content = identity.systemPrompt ?? text
      messages.push({ role: 'system', content })
      this.step('System prompt', content)
    },
    user(text) {
      messages.push({ role: 'user', content: text })
      add('USER_INPUT', beginning(text), { text })
      context += Math.ceil(text.length / 4)
      time += random.between(30, 90)
    },
    model(output, promptTokens = context) {
      const latency = random.between(450, 2_800)
      time += latency
      const isText = typeof output === 'string'
      const completionTokens =
        Math.ceil((isText ? output : JSON.stringify(output.input)).length / 4) + random.between(3, 12)
      const cost = (promptTokens * PROMPT_NANOS + completionTokens * COMPLETION_NANOS) / 1e9
      const usage = { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens }
      const storyText = isText
        ? { role: 'assistant', content: output }
        : { role: 'assistant', content: null, tool_calls: [{ type: 'function', function: functionOf(output) }] }
      const sent = promptOf(messages)
      messages.push(storyText)
      context += completionTokens
      return add('LLM_CALL', isText ? beginning(output) : MODEL, {
        model: MODEL,
        latency,
        usage,
        cost,
        messages: sent,
        output: storyText,
      })
    },
    tool({ toolName, input }, result, parentSpanId, linked) {
      const latency = random.between(40, 900)
      time += latency
      context += 60
      messages.push({
        role: 'tool',
        name: toolName,
        content: JSON.stringify('output' in result ? result.output : result),
      })
      add('TOOL_CALL', toolName, { toolName, input, ...result, latency, ...linked }, parentSpanId)
    },
    step(label, text) {
      add('AGENT_STEP', label, { text })
      time += random.between(5, 40)
    },
    policy(action, toolName, policyId, decided) {
      add('POLICY_DECISION', `${action} ${toolName}`, { action, policyIds: [policyId], toolName, ...decided })
      time += 1
    },
    error(message, code) {
      add('ERROR', beginning(message), { message, code })
      time += random.between(5, 20)
    },
    outcome(status) {
      add('SESSION_OUTCOME', status, { status })
    },
    wait(ms) {
      time += ms
    },
  }
}

/** The system prompt and the newest messages, like agents with long conversations. */
function promptOf(messages: readonly Message[]): readonly Message[] {
  return [...messages.slice(0, 1), ...messages.slice(1).slice(-MESSAGES_SENT)]
}

function functionOf({ toolName, input }: ToolPlan): { name: string; arguments: string } {
  return { name: toolName, arguments: JSON.stringify(input) }
}

function beginning(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`
}

/** Repeatable random numbers: the same seed gives the same numbers. Pure. */

export interface Chance {
  /** From 0 (included) to 1 (excluded). */
  next(): number
  /** An integer from `least` to `most`, both included. */
  between(least: number, most: number): number
  pick<Item>(items: readonly [Item, ...Item[]]): Item
}

/** SplitMix32 (Steele, Lea, Flood 2014, in its 32-bit form), starting from a hash of the seed. */
export function chance(seed: string): Chance {
  let state = Number.parseInt(hash('sha256', seed).slice(0, 8), 16)
  const next = (): number => {
    state = (state + 0x9e3779b9) | 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (items) => items[Math.floor(next() * items.length)] ?? items[0],
  }
}
