/** Which of the tools that were called have labels: a tool without any is no source and no sink, whatever it does. */
import { namesTool, type ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import { toolNameOf } from '@tacho/policy/language/tool-name.ts'
import type { SimulationResult } from '@tacho/contract/policies/simulation.ts'

const TOOLS_COUNTED = 1_000
const TOOLS_LISTED = 20

type Coverage = Omit<NonNullable<SimulationResult['past']>, 'unknown'>

interface CalledTool {
  name: string
  server: string | null
}

export function labelCoverage(rules: readonly ToolLabels[]) {
  const tools = new Map<string, { isLabelled: boolean; calls: number }>()
  let calls = 0
  let labelledCalls = 0
  return {
    count(tool: CalledTool): void {
      calls += 1
      const { server, own } = toolNameOf(tool.name, tool.server ?? '')
      const key = server === '' ? own : `${server} ${own}`
      let counted = tools.get(key)
      if (counted === undefined) {
        counted = { isLabelled: rules.some((rule) => namesTool(rule, tool)), calls: 0 }
        // Beyond this number of tools, only the calls are counted.
        if (tools.size < TOOLS_COUNTED) tools.set(key, counted)
      }
      counted.calls += 1
      if (counted.isLabelled) labelledCalls += 1
    },
    found(): Coverage {
      const unlabelled = [...tools]
        .filter(([, { isLabelled }]) => !isLabelled)
        .sort(([, a], [, b]) => b.calls - a.calls)
      return {
        tools: tools.size,
        labelledTools: tools.size - unlabelled.length,
        calls,
        labelledCalls,
        unlabelled: unlabelled.slice(0, TOOLS_LISTED).map(([key]) => key),
      }
    },
  }
}
