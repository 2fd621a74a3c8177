/** The OpenAI client, 4 to 7: `const openai = recordClient(new OpenAI(), tacho)`. */
import type { StopSignal } from '../delivery/runtime.ts'
import type { Recorder } from '../recorder.ts'
import type { Tacho } from '../tacho.ts'
import { askedCallsOf } from './asked-calls.ts'
import { fitsParser } from './fits.ts'
import { recordMethods } from './client.ts'
import { fields, guarded, text, withFunction, withProperty } from './host.ts'
import { CHAT, EMBEDDINGS, RESPONSES } from './openai-methods.ts'
import type { WrapOptions } from '../guard/rules.ts'
import { unguarded } from './unguarded.ts'

/**
 * The same client. Its model calls are recorded as LLM_CALL events of the current run; outside a run, each becomes a run of
 * its own. Recorded are `chat.completions`, `responses` and `embeddings`, streamed or not, and the helpers that use them.
 * The answers and errors of the client stay the same. A copy made by `withOptions` is not recorded.
 */
export function recordClient<Client extends object>(client: Client, tacho: Recorder): Client {
  return recordMethods(client, tacho, [CHAT, RESPONSES, EMBEDDINGS])
}

/**
 * The same tools for `chat.completions.runTools`, or for `runnerFunction` of the Responses API, guarded: policies decide each
 * call, a person approves it if a policy requires that, and the call is recorded as a TOOL_CALL. Conditions see what the
 * function gets: the result of `parse`, or without it the text of the model as `tool.input.input`. A refusal is the tool's answer.
 * @throws TypeError for a tool without a function of its own.
 */
export function guardTools<Tools extends readonly object[]>(tools: Tools, tacho: Tacho, options?: WrapOptions): Tools {
  const guard = (tool: object) => {
    const { function: runnable, type, name: ofResponses, $callback: callback } = fields(tool)
    const { name: given, function: run, parse } = fields(runnable)
    const ownName = typeof run === 'function' ? text(run.name) : undefined
    const givenName = text(given) ?? text(ofResponses) ?? ownName ?? String(type)
    askedCallsOf(tacho).guard(
      givenName,
      fitsParser(parse, (raw) => raw),
    )
    const guardedRun = (run: Function) =>
      function (this: unknown, ...args: unknown[]) {
        const [input, ...more] = args
        // A host may rename a tool.
        const name = text(fields(this)['name']) ?? givenName
        const act = (judged: unknown) => Reflect.apply(run, runnable, [judged, ...more]) as unknown
        const { signal: hostSignal, controller } = fields(more[0])
        const signal = (hostSignal ?? fields(controller)['signal']) as StopSignal | undefined
        return guarded<unknown>(tacho, { name, input, signal }, act, (error) => error.modelText)
      }
    // A typed tool hides its function here, and its parser.
    const isTyped = typeof callback === 'function'
    const copy = isTyped ? withFunction(tool, '$callback', guardedRun) : tool
    if (typeof run === 'function') {
      return withProperty(copy, 'function', withFunction(runnable as object, 'function', guardedRun))
    }
    return isTyped ? copy : unguarded(tacho, tool, givenName, 'it has no function of its own.', options)
  }
  return tools.map(guard) as unknown as Tools
}
