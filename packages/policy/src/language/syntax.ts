type Range = { readonly start: number; readonly end: number }

/** A node of the syntax tree. `start` and `end` are UTF-16 offsets in the source. */
export type Node = Range &
  (
    | { readonly kind: 'literal'; readonly value: Literal }
    | { readonly kind: 'name'; readonly name: string }
    | { readonly kind: 'field'; readonly object: Node; readonly key: string }
    | { readonly kind: 'index'; readonly object: Node; readonly key: Node }
    | { readonly kind: 'list'; readonly elements: readonly Node[] }
    | { readonly kind: 'map'; readonly entries: readonly { readonly key: Node; readonly value: Node }[] }
    | { readonly kind: 'choice'; readonly condition: Node; readonly consequent: Node; readonly alternate: Node }
    | { readonly kind: 'unary'; readonly operator: '!' | '-'; readonly operand: Node }
    | { readonly kind: 'binary'; readonly operator: string; readonly left: Node; readonly right: Node }
    | { readonly kind: 'call'; readonly name: string; readonly values: readonly Node[] }
    | { readonly kind: 'method'; readonly name: string; readonly receiver: Node; readonly values: readonly Node[] }
  )

export type Literal = null | boolean | string | bigint | number
export type NodeOf<Kind extends Node['kind']> = Extract<Node, { kind: Kind }>

export function childrenOf(node: Node): readonly Node[] {
  switch (node.kind) {
    case 'literal':
    case 'name':
      return []
    case 'field':
      return [node.object]
    case 'index':
      return [node.object, node.key]
    case 'list':
      return node.elements
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value])
    case 'choice':
      return [node.condition, node.consequent, node.alternate]
    case 'unary':
      return [node.operand]
    case 'binary':
      return [node.left, node.right]
    case 'call':
      return node.values
    case 'method':
      return [node.receiver, ...node.values]
  }
}

/** The number of nodes in a tree. */
export function sizeOf(node: Node): number {
  return childrenOf(node).reduce((size, child) => size + sizeOf(child), 1)
}

export const LOOPS = ['all/2', 'exists/2', 'exists_one/2', 'map/2', 'map/3', 'filter/2'] as const
export type Loop = (typeof LOOPS)[number]

/** The loop of a method call, if it is one. Its first argument is then the name of the loop variable. */
export function loopOf(node: NodeOf<'method'>): Loop | undefined {
  return LOOPS.find((loop) => loop === `${node.name}/${node.values.length}`)
}

/** The value of a text literal. */
export function literalText(node: Node | undefined): string | undefined {
  return node?.kind === 'literal' && typeof node.value === 'string' ? node.value : undefined
}

/** `now` for a name, `tool.name` for a field of a name. */
export function dottedName(node: Node): string | undefined {
  if (node.kind === 'name') return node.name
  return node.kind === 'field' && node.object.kind === 'name' ? `${node.object.name}.${node.key}` : undefined
}

/** The tool in `tool.name == "pay" && …`: the condition is false for every other tool. */
export function firstToolOf(node: Node): string | undefined {
  if (node.kind !== 'binary') return undefined
  const { operator, left, right } = node
  if (operator === '&&') return firstToolOf(left)
  return operator === '==' && dottedName(left) === 'tool.name' ? literalText(right) : undefined
}

/** Whether a node itself reads the past of the run, apart from its arguments. */
export function isOfHistory(node: Node): boolean {
  return node.kind === 'call' && node.name === 'origin'
}

/**
 * The only tool whose calls a loop over `run.calls` examines, if a part of its condition names it:
 * `c.tool == "pay" && …`. Other calls cannot change the result, because false decides a conjunction even if another
 * part fails.
 */
export function onlyToolOf(node: NodeOf<'method'>): string | undefined {
  const [variable, condition] = node.values
  if (dottedName(node.receiver) !== 'run.calls' || variable?.kind !== 'name' || !condition) return undefined
  if (loopOf(node) === 'map/2') return undefined
  const [joiner, comparison] = operatorsOf(node)
  const toolIn = (innerNode: Node): string | undefined => {
    if (innerNode.kind !== 'binary') return undefined
    const { operator, left, right } = innerNode
    if (operator === joiner) return toolIn(left) ?? toolIn(right)
    if (operator !== comparison) return undefined
    const name = `${variable.name}.tool`
    if (dottedName(left) === name) return literalText(right)
    return dottedName(right) === name ? literalText(left) : undefined
  }
  return toolIn(condition)
}

/** Operators of a loop's condition: the one that joins its parts, and the one by which a part excludes a call. */
function operatorsOf({ name }: NodeOf<'method'>): readonly [joiner: string, comparison: string] {
  return name === 'all' ? ['||', '!='] : ['&&', '==']
}

/**
 * The path and the value in `c.input.id == tool.input.id && …` of a loop over `run.calls`. The value is a variable, or
 * a field of one. Parts before it spend no steps, so calls with another value cost no more than this comparison.
 */
export function soughtInputOf(node: NodeOf<'method'>): { path: readonly string[]; value: Node } | undefined {
  const [variable, condition] = node.values as [Node, Node]
  const [joiner, comparison] = operatorsOf(node)
  const [call] = pathOf(variable)
  const partsOf = (loopPart: Node): Node[] =>
    loopPart.kind === 'binary' && loopPart.operator === joiner
      ? [loopPart.left, loopPart.right].flatMap(partsOf)
      : [loopPart]
  const isFree = (loopPart: Node): boolean => {
    const isAround = loopPart.kind === 'unary' || (loopPart.kind === 'call' && loopPart.name === 'has')
    const [read] = pathOf(isAround ? (childrenOf(loopPart)[0] as Node) : loopPart)
    return read === call || isShort(onlyToolOf({ ...node, values: [variable, loopPart] }))
  }
  for (const loopPart of dottedName(node.receiver) === 'run.calls' && node.name !== 'map' ? partsOf(condition) : []) {
    if (loopPart.kind === 'binary' && loopPart.operator === comparison) {
      for (const [side, value] of [
        [loopPart.left, loopPart.right],
        [loopPart.right, loopPart.left],
      ] as const) {
        const [[of, ...path], [root]] = [pathOf(side), pathOf(value)]
        if (of === call && path[0] === 'input' && root && root !== call) return { path, value }
      }
    }
    if (!isFree(loopPart)) break
  }
  return undefined
}

/** Whether a value is a text that is compared without spending a step. */
export function isShort(value: unknown): value is string {
  return typeof value === 'string' && value.length < 32
}

/** The names in `a.b.c`; empty for any other node. */
function pathOf(node: Node): readonly string[] {
  if (node.kind === 'name') return [node.name]
  const path = node.kind === 'field' ? pathOf(node.object) : []
  return path.length > 0 && node.kind === 'field' ? [...path, node.key] : []
}

/**
 * Whether a loop over the run's calls reads nothing besides the calls, and no input: old calls no longer have theirs.
 */
export function isOfSettled(node: NodeOf<'method'>): boolean {
  const [variable, ...bodies] = node.values
  const names = new Set<unknown>()
  const isSettled = (innerNode: Node): boolean => {
    if (innerNode.kind === 'name') return names.has(innerNode.name) && innerNode.name !== dottedName(variable as Node)
    if (innerNode.kind === 'field' && dottedName(innerNode.object) === dottedName(variable as Node))
      return innerNode.key !== 'input'
    if (innerNode.kind === 'method' && loopOf(innerNode)) names.add(dottedName(innerNode.values[0] as Node))
    return !isOfHistory(innerNode) && childrenOf(innerNode).every(isSettled)
  }
  return dottedName(node.receiver) === 'run.calls' && loopOf(node) !== 'exists_one/2' && bodies.every(isSettled)
}
