import type { Recorder } from '../recorder.ts'
import type { WrapOptions } from '../guard/rules.ts'
import { beginPart } from './host.ts'

/**
 * @internal Returns a tool that cannot be guarded, and records that it runs unguarded.
 * @throws TypeError unless the host allows that.
 */
export function unguarded<Tool>(
  tacho: Recorder,
  tool: Tool,
  toolName: string,
  why: string,
  options: WrapOptions = {},
): Tool {
  if (options.unguarded !== 'allow') throw new TypeError(`The tool ${toolName} cannot be guarded: ${why}`)
  const { core, context, end } = beginPart(tacho)
  core.diagnostics.report('warning', 'unguarded_tool', `The tool ${toolName} runs unguarded: ${why}`)
  const payload = { toolName, isGuarded: false, reason: why }
  core.record(context.scope, { type: 'AGENT_STEP', label: `unguarded ${toolName}`, payload, span: context.span })
  end('COMPLETED')
  return tool
}
