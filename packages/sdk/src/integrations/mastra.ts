/** Mastra: `const createTool = guardTool(mastra.createTool, tacho)`. Its models: `recordModel` of `@tacho/sdk/ai`. */
import type { StopSignal } from '../delivery/runtime.ts'
import type { Tacho } from '../tacho.ts'
import { fields, text } from './host.ts'
import { guardedFactory } from './tool-factory.ts'

/**
 * The same `createTool`; the tools that it makes are guarded: policies decide each call, a person approves it if a policy
 * requires that, and the call is recorded as a TOOL_CALL. Conditions see the `id` of the tool as `tool.name`, and the input
 * that its `execute` gets. A call that may not run throws a ToolBlockedError; Mastra gives the model an error that says why.
 */
export function guardTool<Create extends (options: never) => object>(createTool: Create, tacho: Tacho): Create {
  return guardedFactory(createTool, tacho, {
    name: (_args, { id }) => text(id) ?? 'tool',
    signal: ([context]) => fields(context)['abortSignal'] as StopSignal | undefined,
    callId: ([context]) => fields(fields(context)['agent'])['toolCallId'],
    refused(error) {
      throw new Error(error.modelText, { cause: error })
    },
  })
}
