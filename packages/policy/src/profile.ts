import { Environment } from '@marcbachmann/cel-js'
import { POLICY_LIMITS } from './limits.ts'
import { VARIABLES } from './variables.ts'

type Schema = Record<string, string>

/** `tool` -> { name, input } and so on; a variable without a dot has no fields. */
export const FIELDS: ReadonlyMap<string, Schema> = new Map(
  Object.entries(
    Object.entries(VARIABLES).reduce<Record<string, Schema>>((roots, [name, { type }]) => {
      const [root = name, field] = name.split('.')
      const fields = (roots[root] ??= {})
      if (field !== undefined) fields[field] = type
      return roots
    }, {}),
  ),
)

export const TYPE_NAMES = ['bool', 'int', 'double', 'string', 'list', 'map', 'null_type', 'type'] as const

/**
 * Parses conditions and checks their types. It never evaluates: the engine's own evaluator runs patterns as backtracking
 * regular expressions, keeps types it has seen for good, and reads times by the host's time zone.
 */
export const engine = new Environment({
  limits: { maxAstNodes: POLICY_LIMITS.nodes, maxDepth: POLICY_LIMITS.nestingLevels },
})
for (const [root, fields] of FIELDS) {
  const isPlain = Object.keys(fields).length === 0
  if (isPlain) engine.registerVariable(root, VARIABLES[root as keyof typeof VARIABLES].type)
  else engine.registerVariable(root, { schema: fields })
}
