/**
 * Decides an example of a call, with the past of its run, as an agent would: for `tacho policies test` and the ready sets in
 * the console. The caller has checked the members of the example.
 */
import { decide, type Policy } from '../decide.ts'
import type { Facts } from '../language/variables.ts'
import { RecordedHistory } from './recorded-history.ts'
import { labelsOfCall, type ToolLabels } from './tool-labels.ts'

export interface ExampleCall extends Pick<Facts, 'agent' | 'session' | 'risk'> {
  readonly tool: string
  readonly server?: string | undefined
  readonly input?: Facts['tool']['input']
  readonly annotations?: Facts['tool']['annotations']
  readonly run?: Facts['run']
  /** Earlier steps: the user's words, and calls that returned or failed. Oldest first. */
  readonly past?: readonly PastStep[]
  readonly expect: string
  /** The policies that must match, in any order. Absent: not compared. */
  readonly policies?: readonly string[] | null
}

export interface PastStep {
  readonly said?: unknown
  readonly tool?: string
  readonly server?: string
  readonly input?: unknown
  readonly output?: unknown
  readonly error?: unknown
}

export interface DecidedExample {
  readonly ok: boolean
  readonly action: string
  /** Policies that match. */
  readonly policies: readonly string[]
  readonly failures: readonly { readonly policyId: string; readonly message: string }[]
}

/** @param now Unix time in milliseconds */
export function decideExample(
  example: ExampleCall,
  deployed: { policies: readonly Policy[]; labels: readonly ToolLabels[] },
  now: number,
): DecidedExample {
  const { action, matched, failures } = decide(deployed.policies, factsOf(example, deployed.labels, now))
  const policies = matched.map(({ policyId }) => policyId)
  const expected = example.policies ?? null
  const hasPolicies = expected === null || expected.toSorted().join() === policies.toSorted().join()
  return { ok: action === example.expect && hasPolicies, action, policies, failures }
}

/** A fact of a wrong type fails the conditions that read it, as in an agent. */
function factsOf(example: ExampleCall, labels: readonly ToolLabels[], now: number): Facts {
  const { tool: name, server, input, annotations, agent, run, session, risk, past = [] } = example
  const tool = { name, server, input, annotations } as Facts['tool']
  const recorded = new RecordedHistory(
    () => labels,
    () => now,
  )
  for (const { said, tool: toolName, server: toolServer, input: toolInput = {}, ...end } of past) {
    if (said === undefined) recorded.see('TOOL_CALL', { toolName, toolServer, input: toolInput, ...end })
    else recorded.see('USER_INPUT', { text: said })
  }
  const isMap = run === undefined || (typeof run === 'object' && run !== null && !Array.isArray(run))
  const withPast = isMap ? { ...run, history: recorded.history } : run
  const { does } = labelsOfCall(labels, { tool, now })
  return { tool: { ...tool, labels: does }, agent, run: withPast, session, risk, now } as Facts
}
