/** Helpers for the tests of guarded calls. */
import type { TestContext } from 'node:test'
import { ToolBlockedError, type LocalPolicy } from '../../src/index.ts'
import { hostRuntime } from '../../src/delivery/runtime.ts'
import { fakeTacho, type FakeOptions } from '../../src/testing/fake-tacho.ts'

// A slow machine must not count as a late start.
hostRuntime.lateStartMs = Infinity

export function policy(action: string, condition = 'tool.name == "refund"', severity = 'HIGH'): LocalPolicy {
  return { policyId: `p-${action.toLowerCase()}`, name: action, version: '1', condition, severity, action }
}

export function fake(t: TestContext, options: FakeOptions = {}) {
  const service = fakeTacho({ onDiagnostic: () => undefined, ...options })
  t.after(service.close)
  return service
}

/** The result of the call, or the code of its refusal. */
export async function resultOf(act: Promise<unknown>): Promise<unknown> {
  try {
    return await act
  } catch (error) {
    if (error instanceof ToolBlockedError) return error.code
    throw error
  }
}
