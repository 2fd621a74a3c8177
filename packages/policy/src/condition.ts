import { build } from './build.ts'
import { type Fields, fieldsIn } from './fields.ts'
import type { Node } from './syntax.ts'
import type { Step } from './value.ts'

/** A checked condition, ready to evaluate. Stateless: any number of evaluations can share it. */
export type Condition = {
  readonly source: string
  readonly fields: Fields
  readonly run: Step
}

/** The condition of a tree without faults, whose patterns are compiled. */
export function conditionOf(source: string, root: Node): Condition {
  return Object.freeze({ source, fields: fieldsIn(root), run: build(root) })
}

/** The conditions of earlier processes, which the same program checked. */
export interface ConditionStore {
  get(source: string): Condition | undefined
  /** Only conditions without a fault. */
  add(source: string, root: Node): void
}
