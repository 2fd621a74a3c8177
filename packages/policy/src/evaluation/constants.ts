import { build } from './build.ts'
import { childrenOf, dottedName, isOfHistory, loopOf, type Node } from '../language/syntax.ts'
import { Failure, OutOfSteps, Scope, type Value } from './value.ts'
import { VARIABLE_NAMES } from '../language/variables.ts'

type Refuse = (node: Node, message: string) => void

/** Dependency of a node: the depth of the outermost loop whose variable it reads, or one of these. */
const FACT = -1
const NOTHING = Infinity

const noFact = new Failure('constants read no facts')

/**
 * Rejects the parts of a checked condition that fail for every call: `duration("30d")`, `1 / 0`. All parts share the steps of
 * one evaluation. Parts that come after the last step are not checked.
 */
export function checkConstants(root: Node, refuse: Refuse): void {
  const reads = new Map<Node, number>()
  note(root, new Map())
  const scope = new Scope({ fact: () => noFact, history: undefined })

  function note(node: Node, locals: ReadonlyMap<string, number>): number {
    const read = readBy(node, locals)
    reads.set(node, read)
    return read
  }

  function readBy(node: Node, locals: ReadonlyMap<string, number>): number {
    const name = dottedName(node)
    if (node.kind === 'name' && locals.has(node.name)) return locals.get(node.name) ?? FACT
    if (VARIABLE_NAMES.some((variable) => variable === name)) return FACT
    if (node.kind !== 'method' || !loopOf(node)) {
      return Math.min(isOfHistory(node) ? FACT : NOTHING, ...childrenOf(node).map((child) => note(child, locals)))
    }
    const [variable, ...bodies] = node.values
    const depth = Math.max(FACT, ...locals.values()) + 1
    const inside = new Map(locals)
    if (variable?.kind === 'name') inside.set(variable.name, depth)
    const inner = Math.min(NOTHING, ...bodies.map((body) => note(body, inside)))
    return Math.min(note(node.receiver, locals), inner === depth ? NOTHING : inner)
  }

  function visit(node: Node): void {
    const result = valueOf(node)
    if (result instanceof Failure) {
      const { at, failure } = innermost(node, result)
      return refuse(at, `this always fails: ${failure.message}`)
    }
    if (result !== undefined) return
    if (node.kind === 'binary' && ['/', '%'].includes(node.operator) && valueOf(node.right) === 0n) {
      refuse(node, 'this always fails: division by zero')
    }
    for (const child of childrenOf(node)) visit(child)
  }

  /** Undefined unless the node is a constant. */
  function valueOf(node: Node): Value | Failure | undefined {
    return reads.get(node) === NOTHING ? build(node)(scope) : undefined
  }

  function innermost(node: Node, failure: Failure): { at: Node; failure: Failure } {
    for (const child of childrenOf(node)) {
      const result = valueOf(child)
      if (result instanceof Failure) return innermost(child, result)
    }
    return { at: node, failure }
  }

  try {
    visit(root)
  } catch (error) {
    if (!(error instanceof OutOfSteps)) throw error
  }
}
