import type { BlockCode, BlockFacts } from './blocked.ts'

const MODEL_TEXTS: Readonly<Record<BlockCode, string>> = {
  policy: 'A policy forbids this call. Do not try it again; find another way or tell the user that it is not possible.',
  loop_detected: 'The same call was made too often. Do not repeat it; use what you know or ask the user.',
  budget_exceeded: 'The budget of this run is used up. Call no more tools and finish with what you have.',
  approval_rejected: 'A person rejected this call. Do not try it again.',
  approval_expired: "This call needs a person's approval and got none in time. Do not try it again; tell the user.",
  approval_timeout: "This call needs a person's approval and got none in time. Do not try it again; tell the user.",
  approval_pending: "This call waits for a person's approval. Do not make it again; tell the user that it waits.",
  approval_used:
    'Its approval by a person is used up: it ran already with these arguments, or may have. Tell the user; if it must run again, ask them first.',
  approval_unavailable: "This call needs a person's approval, but it could not be requested. Tell the user; try later.",
  aborted: 'The call was cancelled before it was approved.',
  caller_gone: 'The caller stopped waiting before a person decided.',
  call_cut:
    'Your answer ended before its arguments were complete. Make the call again with all of its arguments, and shorter if you can.',
  input_changed: 'The arguments changed after they were checked. Make the call again with the final arguments.',
  input_not_json: 'The arguments are not plain JSON, so the call could not be checked. Use plain JSON.',
  not_configured: 'The rules for this tool are not available. Tell the user; try later.',
  guard_failed: 'The call could not be checked. Tell the user; try later.',
}

/** Codes of faults that were found before the policies, so the message mentions no policy. */
const OTHER_CODES: ReadonlySet<BlockCode> = new Set([
  'input_changed',
  'input_not_json',
  'aborted',
  'caller_gone',
  'call_cut',
  'guard_failed',
  'approval_used',
])

export function modelText({ code, toolName, decisionReason, policyMessage }: BlockFacts): string {
  const reasonText = decisionReason ? ` They said: ${decisionReason}` : ''
  const rule = policyMessage && !OTHER_CODES.has(code) ? ` The policy says: ${policyMessage}` : ''
  return `The tool ${toolName} was not run. ${MODEL_TEXTS[code]}${rule}${reasonText}`
}
