import { VARIABLE_NAMES } from './variables.ts'

/** Only conditions of labels can read the output, because a policy decides before the tool runs. */
export const OUTPUT = 'tool.output'

/** Field names by variable: `tool` has name, input and so on. A variable without a dot has no fields. */
export const FIELDS: ReadonlyMap<string, readonly string[]> = fieldsByRoot()

function fieldsByRoot(): Map<string, string[]> {
  const roots = new Map<string, string[]>()
  for (const name of VARIABLE_NAMES) {
    if (name === OUTPUT) continue
    const [root = name, ...fields] = name.split('.')
    roots.set(root, [...(roots.get(root) ?? []), ...fields])
  }
  return roots
}

export const TYPE_NAMES = ['bool', 'int', 'double', 'string', 'list', 'map', 'null_type', 'type'] as const
