import type { ASTNode } from '@marcbachmann/cel-js'

/** A node of the syntax tree, as the engine's parser makes it. Its evaluator is never used. */
export type Node = ASTNode
export type Call = Extract<Node, { op: 'call' }>
export type MethodCall = Extract<Node, { op: 'rcall' }>

export function childrenOf(node: Node): readonly Node[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [node.args[0]]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case 'map':
      return node.args.flat()
    case '!_':
    case '-_':
      return [node.args]
    default:
      return node.args
  }
}

/** How many nodes a tree has. */
export function sizeOf(node: Node): number {
  return childrenOf(node).reduce((size, child) => size + sizeOf(child), 1)
}

export const LOOPS = ['all/2', 'exists/2', 'exists_one/2', 'map/2', 'map/3', 'filter/2'] as const
export type Loop = (typeof LOOPS)[number]

/** Which loop a method call is, if any: its first argument is then the name of the loop variable. */
export function loopOf(node: MethodCall): Loop | undefined {
  return LOOPS.find((loop) => loop === `${node.args[0]}/${node.args[2].length}`)
}

/** The text of a text literal. */
export function literalText(node: Node | undefined): string | undefined {
  return node?.op === 'value' && typeof node.args === 'string' ? node.args : undefined
}

/** Loop variables in sight, and their places in the scope. */
export type Names = ReadonlyMap<string, number>

/** `now` of a name, `tool.name` of a field of a name. */
export function dottedName(node: Node): string | undefined {
  if (node.op === 'id') return node.args
  return node.op === '.' && node.args[0].op === 'id' ? `${node.args[0].args}.${node.args[1]}` : undefined
}
