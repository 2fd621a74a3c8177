/** A part of a run: a child span of the current one, or a run of its own. */
import { childSpan, type Context } from './context.ts'
import { leaveCalls, type Core } from '../core.ts'
import type { Failure } from '../delivery/ending.ts'
import { createScope, type Outcome, type RunOptions } from './run.ts'

export interface RunPart {
  readonly core: Core
  readonly context: Context
  /** Ends only a run of its own. `failure`: what ended it. */
  end(status: Outcome, failure?: Failure): void
  /** Stops recording without an end, if it is a run of its own: another process, or a later call, ends it. */
  leave(): void
}

const NOT_OWN = { end: () => undefined, leave: () => undefined }

/** A child span of `parent`, by default of the current span. Outside a run, the span of a new run. */
export function beginPart(core: Core, parent = core.context.getStore(), options: RunOptions = {}): RunPart {
  if (parent) {
    const context = { scope: parent.scope, span: childSpan(core.ids.span(), parent.span) }
    return { core, context, ...NOT_OWN }
  }
  const scope = createScope(core, options)
  const end = (status: Outcome, failure?: Failure) => {
    leaveCalls(core, scope, 'run_ended')
    core.record(scope, { type: 'SESSION_OUTCOME', label: status.toLowerCase(), payload: { status, ...failure } })
  }
  const leave = () => {
    leaveCalls(core, scope, 'handed_over')
    core.record(scope, { type: 'AGENT_STEP', label: 'left the run', isLast: true })
  }
  return { core, context: { scope, span: scope.span }, end, leave }
}

/** The current span itself. Outside a run, the span of a new run. */
export function enclosingPart(core: Core, context = core.context.getStore(), options?: RunOptions): RunPart {
  return context ? { core, context, ...NOT_OWN } : beginPart(core, undefined, options)
}
