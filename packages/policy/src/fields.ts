import { childrenOf, dottedName, literalText, type Node } from './syntax.ts'
import { type VariableName, VARIABLE_NAMES } from './variables.ts'

/**
 * What a condition reads: its variables, and of `tool.input` the paths that are spelt out, as far as they are:
 * `tool.input.cart[0].price`, `tool.input["cart"]` and `"cart" in tool.input` name one, `tool.input[agent.id]` none.
 */
export type Fields = {
  readonly variables: readonly VariableName[]
  readonly inputPaths: readonly (readonly (string | number)[])[]
}

type Path = readonly (string | number)[]

export function fieldsIn(root: Node): Fields {
  const variables = new Set<VariableName>()
  const inputPaths = new Map<string, Path>()

  function visit(node: Node): void {
    const path = pathOf(node)
    if (path) return addPath(path)
    const name = variableOf(node)
    if (name) return void variables.add(name)
    if (node.op === 'in') {
      const container = pathOf(node.args[1])
      const key = literalText(node.args[0])
      if (container && key !== undefined) return addPath([...container, key])
    }
    for (const child of childrenOf(node)) visit(child)
  }

  function addPath(path: Path): void {
    variables.add('tool.input')
    if (path.length > 0) inputPaths.set(JSON.stringify(path), path)
  }

  visit(root)
  return { variables: [...variables], inputPaths: [...inputPaths.values()] }
}

/** The literal path below `tool.input` that a node reads, [] for all of it. */
function pathOf(node: Node): Path | undefined {
  if (variableOf(node) === 'tool.input') return []
  if (node.op !== '.' && node.op !== '[]') return undefined
  const above = pathOf(node.args[0])
  const key = node.op === '.' ? node.args[1] : keyOf(node.args[1])
  return above && key !== undefined ? [...above, key] : undefined
}

function keyOf({ op, args }: Node): string | number | undefined {
  if (op !== 'value') return undefined
  if (typeof args === 'bigint') return Number(args)
  return typeof args === 'string' ? args : undefined
}

/** No loop variable can have the name of one: the rules refuse it. */
function variableOf(node: Node): VariableName | undefined {
  const name = dottedName(node)
  return VARIABLE_NAMES.find((variable) => variable === name)
}
