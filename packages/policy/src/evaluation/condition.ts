import { build } from './build.ts'
import { type Fields, fieldsIn } from '../language/fields.ts'
import { childrenOf, isOfHistory, type Node } from '../language/syntax.ts'
import type { Step } from './value.ts'

/** A checked condition, ready to evaluate. Stateless: any number of evaluations can share it. */
export type Condition = {
  readonly source: string
  readonly fields: Fields
  readonly run: Step
  /** Whether it needs the past of the run. */
  readonly readsHistory: boolean
}

function hasOrigin(node: Node): boolean {
  return isOfHistory(node) || childrenOf(node).some(hasOrigin)
}

/** The condition of a tree without faults, whose patterns are compiled. */
export function conditionOf(source: string, root: Node): Condition {
  const fields = fieldsIn(root)
  const readsHistory = hasOrigin(root) || fields.variables.some((name) => name === 'run.labels' || name === 'run.calls')
  return Object.freeze({ source, fields, run: build(root), readsHistory })
}

/** The conditions of earlier processes, which the same program checked. */
export interface ConditionStore {
  get(source: string): Condition | undefined
  /** Only conditions without a fault. */
  add(source: string, root: Node): void
}
