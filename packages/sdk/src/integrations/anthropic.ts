/** The Anthropic client: `const anthropic = recordClient(new Anthropic(), tacho)`. */
import type { StopSignal } from '../delivery/runtime.ts'
import type { Recorder } from '../recorder.ts'
import type { Tacho } from '../tacho.ts'
import { MessageStream, messageResult } from './anthropic-messages.ts'
import { askedCallsOf } from './asked-calls.ts'
import { fitsParser } from './fits.ts'
import { recordMethods, type Method } from './client.ts'
import { fields, guarded, text, toolNames, withFunction, type Fields } from './host.ts'
import { messagesOf, withSystem } from './messages.ts'
import type { WrapOptions } from '../guard/rules.ts'
import { unguarded } from './unguarded.ts'

/**
 * The same client. Its model calls are recorded as LLM_CALL events of the current run; outside a run, each becomes a run of
 * its own. Recorded are `messages` and `beta.messages`, streamed or not, and the helpers that use them. The answers and
 * errors of the client stay the same. Not recorded: a copy made by `withOptions`.
 */
export function recordClient<Client extends object>(client: Client, tacho: Recorder): Client {
  return recordMethods(client, tacho, METHODS)
}

/**
 * The same tools for `beta.messages.toolRunner`, guarded: policies decide each call, a person approves it if a policy
 * requires that, and the call is recorded as a TOOL_CALL. Conditions see what `run` gets: the result of `parse`. A refusal
 * becomes a tool result with `is_error`.
 * @throws TypeError for a tool that cannot be guarded: of the provider, or a toolset.
 */
export function guardTools<Tools extends readonly object[]>(tools: Tools, tacho: Tacho, options?: WrapOptions): Tools {
  const guard = (tool: object) => {
    const { name: givenName, type, run, parse, toolsetName } = fields(tool)
    const name = text(givenName) ?? String(toolsetName ?? type)
    if (typeof run !== 'function')
      return unguarded(tacho, tool, name, 'it has no run, so the provider runs it.', options)
    if (toolsetName !== undefined || text(givenName) === undefined || String(type).includes('_toolset_'))
      return unguarded(tacho, tool, name, 'it is a toolset, which runs many tools.', options)
    askedCallsOf(tacho).guard(name, fitsParser(parse, JSON.parse))
    return withFunction(tool, 'run', () => (input: unknown, context: unknown, ...more: unknown[]) => {
      const { signal: hostSignal, toolUse, toolUseBlock } = fields(context)
      const signal = hostSignal as StopSignal | undefined
      const { id: callId, name: called } = fields(toolUse ?? toolUseBlock)
      return guarded<unknown>(
        tacho,
        // A host may rename a tool.
        { name: text(called) ?? name, input, signal, callId },
        (judged) => run.call(tool, judged, context, ...more) as unknown,
        (error) => {
          throw new Error(error.modelText, { cause: error })
        },
      )
    })
  }
  return tools.map(guard) as unknown as Tools
}

const METHODS: readonly Method[] = [['messages'], ['beta', 'messages']].map((path) => ({
  path: [...path, 'create'],
  request: ({ model, system, messages, tools }: Fields) => ({
    model,
    tools: toolNames(tools),
    provider: 'anthropic',
    messages: withSystem(system, messagesOf(messages)),
  }),
  result: messageResult,
  stream: () => new MessageStream(),
}))
