import { build } from './build.ts'
import { childrenOf, dottedName, firstToolOf, isOfHistory, type Node } from '../language/syntax.ts'
import type { Preparation, Step } from './value.ts'

/** A checked condition, ready to evaluate. Stateless: any number of evaluations can share it. */
export type Condition = {
  readonly source: string
  readonly root: Node
  /** Names that the condition reads: variables, and loop variables. */
  readonly names: ReadonlySet<string | undefined>
  readonly run: Step
  /** Whether it needs the past of the run. */
  readonly readsHistory: boolean
  /** Work for the next decision that can be done when a call has ended. */
  readonly preparations: readonly Preparation[]
  /** The only tool for which the condition can be true. It is false for all others without reading facts. */
  readonly tool?: string | undefined
}

const nodesOf = (node: Node): Node[] => [node, ...childrenOf(node).flatMap(nodesOf)]

/** Builds the condition from a syntax tree without faults, whose patterns are compiled. */
export function conditionOf(source: string, root: Node): Condition {
  const nodes = nodesOf(root)
  const names = new Set(nodes.map(dottedName))
  const readsHistory = nodes.some(isOfHistory) || names.has('run.labels') || names.has('run.calls')
  // In a condition that reads `tool.server`, `tool.name` is the tool's own name.
  const tool = names.has('tool.server') ? undefined : firstToolOf(root)
  const preparations: Preparation[] = []
  const run = build(root, { places: new Map(), preparations })
  return Object.freeze({ source, root, names, run, readsHistory, preparations, tool })
}

/** The conditions of earlier processes, which the same program checked. */
export interface ConditionStore {
  get(source: string): Condition | undefined
  /** Adds only conditions without a fault. */
  add(source: string, root: Node): void
}
