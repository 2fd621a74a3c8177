/** Reads labels of tools in tacho.yaml: a list of rules, each with its position for errors. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { HISTORY_LABELS } from '@tacho/policy/history/run-history.ts'
import type { ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import type { Entry, YamlReader } from './yaml-reader.ts'

const RULES_MAX = LIMITS.toolLabelRules
const LABELS_MAX = LIMITS.toolLabelsOfOutputs
/** A label as the server accepts it. */
const LABEL = /^[a-z][a-z0-9_-]{0,39}$/
const CLIENT_LABELS: ReadonlySet<string> = new Set(Object.values(HISTORY_LABELS))

export function readLabels(yaml: YamlReader, entry: Entry): ToolLabels[] {
  const items = yaml.items(entry) ?? []
  if (items.length > RULES_MAX) yaml.fault(entry, `must have at most ${RULES_MAX} rules`)
  return items.flatMap((item) => readRule(yaml, item) ?? [])
}

function readRule(yaml: YamlReader, entry: Entry): ToolLabels | null {
  const fields = yaml.fields(entry, ['tool', 'output', 'does', 'when'])
  if (fields === null) return null
  if (!fields.tool) return yaml.fault(entry, 'needs tool: the name of a tool; one * stands for any characters')
  const tool = yaml.text(fields.tool)
  const when = fields.when && yaml.text(fields.when)
  if (!fields.output && !fields.does) return yaml.fault(entry, 'needs output or does: a list of labels')
  const output = fields.output && words(yaml, fields.output)
  const does = fields.does && words(yaml, fields.does)
  if (tool === null || when === null) return null
  const compiled = when === undefined ? { ok: true as const } : compileCondition(when, true)
  if (!compiled.ok) {
    for (const { message, position } of compiled.faults) {
      yaml.fault(fields.when ?? entry, `line ${position.line}, column ${position.column} of the condition: ${message}`)
    }
  }
  return { tool, ...(output && { output }), ...(does && { does }), ...(when !== undefined && { when }) }
}

function words(yaml: YamlReader, entry: Entry): string[] {
  const items = yaml.items(entry) ?? []
  if (items.length > LABELS_MAX) yaml.fault(entry, `must have at most ${LABELS_MAX} labels`)
  return items.flatMap((item) => {
    const label = yaml.text(item)
    if (label === null) return []
    if (CLIENT_LABELS.has(label)) yaml.fault(item, `must not be ${label}: clients give this label by themselves`)
    else if (LABEL.test(label)) return label
    else yaml.fault(item, 'must have 1 to 40 small letters, digits, - or _, and begin with a letter')
    return []
  })
}
