/** Continues a waiting call of the current run with the arguments in its handle. */
import type { Context } from '../context.ts'
import type { Core } from '../core.ts'
import { detached } from '../detach.ts'
import { ToolBlockedError } from './blocked.ts'

/** @throws TypeError if the handle has no such call, or no arguments that can be used here. */
export async function continueCall<Args extends unknown[], T>(
  core: Core,
  context: Context | undefined,
  approvalId: string,
  tool: (...args: Args) => T,
): Promise<Awaited<T>> {
  const call = context?.scope.state.openCalls.get(approvalId)
  if (!context || !call) {
    throw new TypeError(
      `No call of the current run waits for the approval ${approvalId}: resume the handle that was made after the call.`,
    )
  }
  if (call.inputHash === null) throw usedBefore(call.toolName, approvalId)
  const { args, named } = call
  if (!args || Object.keys(Object(named)).length > 0) {
    throw new TypeError(
      `The handle has no arguments of ${call.toolName} that can be used here: call the tool again yourself.`,
    )
  }
  const own = detached(args) as Args
  return await core.context.run({ ...context, continues: call }, () => tool(...own))
}

/** A call that was continued twice in this process. */
function usedBefore(toolName: string, approvalId: string): ToolBlockedError {
  const none = { inputHash: null, policyIds: [], decisionReason: null, reason: null, policyMessage: null }
  const facts = { code: 'approval_used', toolName, approvalId, ...none } as const
  return new ToolBlockedError(facts, `The tool ${toolName} was not run: it ran already under this approval.`)
}
