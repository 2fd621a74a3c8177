import { childrenOf, dottedName, literalText, loopOf, type Node } from './syntax.ts'
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

  function visit(node: Node, locals: ReadonlySet<string>): void {
    const path = pathOf(node, locals)
    if (path) return addPath(path)
    const name = variableOf(node, locals)
    if (name) return void variables.add(name)
    if (node.op === 'in') {
      const container = pathOf(node.args[1], locals)
      const key = literalText(node.args[0])
      if (container && key !== undefined) return addPath([...container, key])
    }
    if (node.op === '[]' && pathOf(node.args[0], locals)) variables.add('tool.input')
    const loopVariable = node.op === 'rcall' && loopOf(node) ? node.args[2][0] : undefined
    if (node.op !== 'rcall' || loopVariable?.op !== 'id') {
      for (const child of childrenOf(node)) visit(child, locals)
      return
    }
    visit(node.args[1], locals)
    const inside = new Set([...locals, loopVariable.args])
    for (const body of node.args[2].slice(1)) visit(body, inside)
  }

  function addPath(path: Path): void {
    variables.add('tool.input')
    if (path.length > 0) inputPaths.set(JSON.stringify(path), path)
  }

  visit(root, new Set())
  return { variables: [...variables], inputPaths: [...inputPaths.values()] }
}

/** The literal path below `tool.input` that a node reads, [] for all of it. */
function pathOf(node: Node, locals: ReadonlySet<string>): Path | undefined {
  if (variableOf(node, locals) === 'tool.input') return []
  if (node.op !== '.' && node.op !== '[]') return undefined
  const above = pathOf(node.args[0], locals)
  const key = node.op === '.' ? node.args[1] : keyOf(node.args[1])
  return above && key !== undefined ? [...above, key] : undefined
}

function keyOf({ op, args }: Node): string | number | undefined {
  if (op !== 'value') return undefined
  if (typeof args === 'bigint') return Number(args)
  return typeof args === 'string' ? args : undefined
}

function variableOf(node: Node, locals: ReadonlySet<string>): VariableName | undefined {
  const root = node.op === '.' ? node.args[0] : node
  if (root.op !== 'id' || locals.has(root.args)) return undefined
  const name = dottedName(node)
  return VARIABLE_NAMES.find((variable) => variable === name)
}
