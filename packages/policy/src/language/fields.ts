import { childrenOf, dottedName, literalText, loopOf, type Node, type NodeOf } from './syntax.ts'
import { type VariableName, VARIABLE_NAMES } from './variables.ts'

/**
 * The variables and the literal paths of `tool.input` that a condition reads. `tool.input.cart[0].price`,
 * `tool.input["cart"]` and `"cart" in tool.input` have a literal path; `tool.input[agent.id]` has none.
 * Loops have the paths of all elements: `tool.input.items.exists(i, i.price > 1)` reads `items`, null, `price`.
 */
export type Fields = {
  readonly variables: readonly VariableName[]
  readonly inputPaths: readonly Path[]
  /** The only tools that the condition can match, as the condition spells them. Empty: it can match other tools too. */
  readonly toolNames: readonly string[]
  /** The expected type of each path, if comparisons or methods show one. */
  readonly inputTypes: readonly { readonly path: Path; readonly type: InputType }[]
}

export type InputType = 'string' | 'double' | 'bool'

/** Null stands for each element of a list, or each key of a map. */
type Path = readonly (string | number | null)[]
/** The loop variables with their paths. Undefined: not a part of the input. */
type Scope = ReadonlyMap<string, Path | undefined>
const NO_LOOP: Scope = new Map()

const COMPARISONS: readonly string[] = ['==', '!=', '<', '<=', '>', '>=']
const OF_TEXTS: readonly string[] = ['startsWith', 'endsWith', 'contains', 'matches']

export function fieldsOf({ root }: { readonly root: Node }): Fields {
  const variables = new Set<VariableName>()
  const inputPaths = new Map<string, Path>()
  const inputTypes = new Map<string, { path: Path; type: InputType }>()

  function visit(node: Node, scope: Scope): void {
    for (const [part, type] of typedParts(node)) {
      const typed = pathOf(part, scope)
      if (typed && typed.length > 0) inputTypes.set(JSON.stringify([typed, type]), { path: typed, type })
    }
    const path = pathOf(node, scope)
    if (path) return addPath(path)
    if (node.kind === 'method' && loopOf(node)) {
      visit(node.receiver, scope)
      for (const innerNode of node.values.slice(1)) visit(innerNode, scopeIn(node, scope))
      return
    }
    const name = variableOf(node)
    if (name) return void variables.add(name)
    if (node.kind === 'binary' && node.operator === 'in') {
      const container = pathOf(node.right, scope)
      const key = literalText(node.left)
      if (container && key !== undefined) return addPath([...container, key])
    }
    for (const child of childrenOf(node)) visit(child, scope)
  }

  function addPath(path: Path): void {
    variables.add('tool.input')
    if (path.length > 0) inputPaths.set(JSON.stringify(path), path)
  }

  visit(root, NO_LOOP)
  return {
    variables: [...variables],
    inputPaths: [...inputPaths.values()],
    toolNames: [...new Set(toolNamesIn(root))],
    inputTypes: [...inputTypes.values()],
  }
}

/**
 * The tools that a condition can match. For a conjunction, those of one part that names some. For an alternative, those
 * of both sides, if both name some.
 */
function toolNamesIn(node: Node): readonly string[] {
  if (node.kind !== 'binary') return []
  const { operator, left, right } = node
  if (operator === '&&' || operator === '||') {
    const [one, other] = [toolNamesIn(left), toolNamesIn(right)]
    if (operator === '&&') return one.length > 0 ? one : other
    return one.length > 0 && other.length > 0 ? [...one, ...other] : []
  }
  if (operator === '==' && variableOf(right) === 'tool.name') return textsIn([left])
  if (variableOf(left) !== 'tool.name') return []
  if (operator === '==') return textsIn([right])
  return operator === 'in' && right.kind === 'list' ? textsIn(right.elements) : []
}

function textsIn(nodes: readonly Node[]): string[] {
  const texts = nodes.map(literalText).filter((text) => text !== undefined)
  return texts.length === nodes.length ? texts : []
}

/** The parts of an expression whose type follows from a literal beside them. */
function typedParts(node: Node): (readonly [Node, InputType])[] {
  if (node.kind === 'method') return OF_TEXTS.includes(node.name) ? [[node.receiver, 'string']] : []
  if (node.kind !== 'binary') return []
  const { operator, left, right } = node
  if (operator === 'in') {
    const types = right.kind === 'list' ? right.elements.flatMap(literalType) : []
    return types.map((type) => [left, type] as const)
  }
  if (!COMPARISONS.includes(operator)) return []
  return [
    ...literalType(right).map((type) => [left, type] as const),
    ...literalType(left).map((type) => [right, type] as const),
  ]
}

/** Every number in an input is a double, and can be compared with ints. */
function literalType(node: Node): InputType[] {
  if (node.kind !== 'literal') return []
  if (typeof node.value === 'string') return ['string']
  if (typeof node.value === 'boolean') return ['bool']
  return node.value === null ? [] : ['double']
}

/** The literal path below `tool.input` that a node reads; [] for the whole input. */
function pathOf(node: Node, scope: Scope): Path | undefined {
  if (node.kind === 'name' && scope.has(node.name)) return scope.get(node.name)
  if (variableOf(node) === 'tool.input') return []
  if (node.kind !== 'field' && node.kind !== 'index') return undefined
  const above = pathOf(node.object, scope)
  const key = node.kind === 'field' ? node.key : keyOf(node.key)
  return above && key !== undefined ? [...above, key] : undefined
}

/** The scope of a loop's parts: its variable is an element of the receiver. */
function scopeIn({ receiver, values: [variable] }: NodeOf<'method'>, scope: Scope): Scope {
  return variable?.kind === 'name' ? new Map(scope).set(variable.name, elementOf(receiver, scope)) : scope
}

function elementOf(node: Node, scope: Scope): Path | undefined {
  const loop = node.kind === 'method' ? loopOf(node) : undefined
  if (node.kind === 'method' && loop === 'filter/2') return elementOf(node.receiver, scope)
  const made = node.kind === 'method' && loop?.startsWith('map/') ? node.values.at(-1) : undefined
  if (node.kind === 'method' && made) return pathOf(made, scopeIn(node, scope))
  const path = pathOf(node, scope)
  return path && [...path, null]
}

function keyOf(node: Node): string | number | undefined {
  if (node.kind === 'literal' && typeof node.value === 'bigint') return Number(node.value)
  return literalText(node)
}

/** A loop variable never has such a name: the rules reject it. */
function variableOf(node: Node): VariableName | undefined {
  const name = dottedName(node)
  return VARIABLE_NAMES.find((variable) => variable === name)
}
