/**
 * Remembers calls that a person rejected. The same tool and input is refused without asking again, until a new
 * configuration arrives, because its policies may decide differently.
 */
import { inputText } from '@tacho/policy/input/input-text.ts'
import type { Run, ToolBlockedError } from '@tacho/sdk'
import { digest } from './state.ts'

export interface Refusal {
  readonly approvalId: string | null
  readonly decisionReason: string | null
  readonly modelText: string
  readonly revision: string | null
  /** The hash that the approver saw. If members are masked, it differs from `hashOf`. */
  readonly inputHash: string
}

const REFUSALS_MAX = 1_000

export class Refusals {
  readonly #refusals: Map<string, Refusal>

  constructor(known: Iterable<readonly [string, Refusal]> = []) {
    this.#refusals = new Map(known)
  }

  /** Notes the error if a person rejected the call. */
  add(toolName: string, input: unknown, error: ToolBlockedError, revision: string | null): boolean {
    const { code, inputHash, approvalId, decisionReason, modelText } = error
    const hash = hashOf(toolName, input)
    if (code !== 'approval_rejected' || inputHash === null || hash === null) return false
    const [oldest] = this.#refusals.keys()
    if (this.#refusals.size >= REFUSALS_MAX && oldest !== undefined) this.#refusals.delete(oldest)
    this.#refusals.set(keyOf(toolName, hash), { approvalId, decisionReason, modelText, revision, inputHash })
    return true
  }

  entries(): [string, Refusal][] {
    return [...this.#refusals]
  }

  /** The earlier refusal of the same call. */
  of(toolName: string, input: unknown, revision: string | null): Refusal | null {
    if (this.#refusals.size === 0) return null
    const hash = hashOf(toolName, input)
    const refusal = hash === null ? undefined : this.#refusals.get(keyOf(toolName, hash))
    return refusal?.revision === revision ? refusal : null
  }
}

/** Records that a call was refused without asking again. Returns the text for the model. */
export function refuseAgain(
  run: Pick<Run, 'record'>,
  { toolName, input, toolCallId }: { toolName: string; input: unknown; toolCallId?: string | undefined },
  { approvalId, inputHash, modelText }: Refusal,
): string {
  const reason = 'a person rejected the same call before'
  const facts = { toolName, inputHash, approvalId, ...(toolCallId !== undefined && { toolCallId }) }
  const payload = { action: 'BLOCK', policyIds: [], ...facts, reason, input }
  run.record({ type: 'POLICY_DECISION', label: `BLOCK ${toolName}`, payload })
  return modelText
}

function keyOf(toolName: string, hash: string): string {
  return `${hash} ${toolName}`
}

/** Equal to `inputHash` of the policy engine, but uses Node's SHA-256: a hook has no time to load another one. */
export function hashOf(toolName: string, input: unknown): string | null {
  try {
    return digest(inputText(toolName, input))
  } catch {
    return null
  }
}
