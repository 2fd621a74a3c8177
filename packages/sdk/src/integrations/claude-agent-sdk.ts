/** Claude Agent SDK: `const query = guardQuery(claude.query, tacho)`, used like the SDK's own. */
import { coreOf } from '../border.ts'
import { attempt } from '../core.ts'
import type { Tacho } from '../tacho.ts'
import { readSafely } from '../recording/json.ts'
import { AgentMessages } from './claude-agent-messages.ts'
import { AgentTools } from './claude-agent-tools.ts'
import { enclosingPart, fields, text, type Fields, type RunPart } from './host.ts'

/**
 * The same `query`. Its model calls are recorded as LLM_CALL events, its tools as TOOL_CALL events, of the current run;
 * outside a run, each query becomes a run of its own, with the session of Claude Code as session. Policies decide each call
 * of a tool, built in, of an MCP server or of a subagent, and a person approves it if a policy requires that. A refusal
 * becomes a tool error. Allowed calls still need the permissions of the query.
 */
export function guardQuery<Query extends (given: never) => object>(query: Query, tacho: Tacho): Query {
  // Tools must not run unguarded.
  const core = coreOf(tacho)
  const guarded = (rawQuery: unknown): object => {
    const around = core.context.getStore()
    const { prompt, options } = fields(rawQuery)
    const settings = fields(options)
    let runPart: RunPart | undefined
    // The session is known from the first message or hook on.
    const begin = (sessionId: unknown): RunPart => {
      const open = () => enclosingPart(tacho, { sessionId: text(sessionId) })
      return (runPart ??= around ? core.context.run(around, open) : open())
    }
    const tools = new AgentTools(tacho, begin)
    const messages = new AgentMessages(tacho, begin, tools)
    const run = query as unknown as (given: unknown) => object
    const result = run({
      ...fields(rawQuery),
      prompt: typeof prompt === 'string' ? prompt : observedPrompt(prompt, messages),
      // Request partial messages: only the events of the stream have the tokens of a call.
      options: { ...settings, ...tools.options(settings), includePartialMessages: true },
    })
    if (typeof prompt === 'string') attempt(() => messages.prompt(prompt))
    return readSafely(() => observed(result, messages, settings['includePartialMessages'] === true), result)
  }
  return guarded as unknown as Query
}

/** Prompts are recorded when Claude Code reads them. */
function observedPrompt(rawPrompt: unknown, messages: AgentMessages): unknown {
  const source = rawPrompt as Partial<AsyncIterable<unknown>> | undefined
  if (typeof source?.[Symbol.asyncIterator] !== 'function') return rawPrompt
  return (async function* () {
    for await (const message of source as AsyncIterable<unknown>) {
      attempt(() => messages.prompt(fields(fields(message)['message'])['content']))
      yield message
    }
  })()
}

/** Hides events of the stream unless the host asked for them. */
function observed(query: object, messages: AgentMessages, wantsPartial: boolean): object {
  const iterable = query as AsyncIterable<unknown>
  const iterator = iterable[Symbol.asyncIterator]()
  // Bind the original now, because the methods of the query are replaced.
  const next = iterator.next.bind(iterator)
  const leave = iterator.return?.bind(iterator)
  const fail = iterator.throw?.bind(iterator)
  const isHidden = ({ type }: Fields) => type === 'stream_event' && !wantsPartial
  const replaced: AsyncIterableIterator<unknown> = {
    async next() {
      for (;;) {
        const item = await next().catch((error: unknown) => {
          attempt(() => messages.end(error))
          throw error
        })
        attempt(() => (item.done ? messages.end() : messages.add(fields(item.value))))
        if (item.done || !isHidden(fields(item.value))) return item
      }
    },
    async return(value?: unknown) {
      attempt(() => messages.end())
      return (await leave?.(value)) ?? { done: true, value }
    },
    async throw(error?: unknown) {
      attempt(() => messages.end(error))
      if (fail) return fail(error)
      throw error
    },
    [Symbol.asyncIterator]: () => replaced,
  }
  return Object.assign(query, replaced)
}
