/** A checked condition as JSON and the programs of its patterns, for a process that ends after one decision. */
import { Automaton } from '../pattern/automaton.ts'
import { patternOf, setPattern } from '../pattern/pattern.ts'
import type { Program } from '../pattern/program.ts'
import { childrenOf, type Node, type NodeOf } from '../language/syntax.ts'

/** Whether JSON can hold all numbers of the tree. */
export function isKeepable(root: Node): boolean {
  return nodesOf(root).every((node) => node.kind !== 'literal' || isExact(node.value))
}

/** JSON of a value that contains syntax trees. */
export function keptJson(value: unknown): string {
  return JSON.stringify(value, (_, innerValue: unknown) =>
    typeof innerValue === 'bigint' ? { int: String(innerValue) } : innerValue,
  )
}

/** The programs of all patterns of a tree, by their source. */
export function programsOf(root: Node): ReadonlyMap<string, Program> {
  const programs = new Map<string, Program>()
  for (const literal of patternsOf(nodesOf(root))) {
    const pattern = patternOf(literal)
    if (pattern) programs.set(String(literal.value), pattern.automaton.program)
  }
  return programs
}

/**
 * Turns the parsed text of `keptJson` back into a tree, in place.
 * @throws Error if the program of a pattern is missing.
 */
export function treeOf(storedTree: unknown, programs: ReadonlyMap<string, Program>): Node {
  const root = storedTree as Node
  const nodes = nodesOf(root)
  for (const node of nodes) {
    const { value } = node as { value?: unknown }
    if (node.kind === 'literal' && typeof value === 'object' && value !== null) {
      ;(node as { value: unknown }).value = BigInt((value as { int: string }).int)
    }
  }
  for (const literal of patternsOf(nodes)) {
    const program = programs.get(String(literal.value))
    if (!program) throw new Error('a pattern is not kept')
    setPattern(literal, { automaton: new Automaton(program) })
  }
  return root
}

function nodesOf(root: Node): Node[] {
  const nodes = [root]
  for (const node of nodes) nodes.push(...childrenOf(node))
  return nodes
}

function patternsOf(nodes: readonly Node[]): NodeOf<'literal'>[] {
  return nodes.flatMap((node) => {
    const [first] = node.kind === 'method' && node.name === 'matches' ? node.values : []
    return first?.kind === 'literal' ? [first] : []
  })
}

function isExact(value: unknown): boolean {
  return typeof value !== 'number' || (Number.isFinite(value) && !Object.is(value, -0))
}
