/** The steps of a run as a tree of its spans, in order of start, so that branches and loops can be folded. Pure. */
import { useCallback, useMemo, useState } from 'react'
import type { Bar } from '@tacho/contract/runs/timeline.ts'
import type { Step } from '../queries.ts'
import type { Problem } from './problems.ts'

export interface Branch {
  step: Step
  depth: number
  /** Number of steps below it. */
  below: number
  /** Time at which the last step below it ended. */
  to: number
  /** Sums of the step and the steps below it. */
  tokens: number
  cost: number
  /** On the first step of a loop: the number of consecutive steps that are alike. Otherwise 1. */
  times: number
  /** Whether the row hides the steps below it. */
  isClosed: boolean
}

/** A visible branch. */
export type Row = Branch

/** Fewest consecutive equal steps that are folded as a loop. */
const LOOP = 4
const DEEPEST = 8

/** Steps with the same text count as equal. */
type AlikeOf = (step: Step) => string

/** The tree of spans, each with its steps and spans in order of start. `alikeOf`: null folds no loops. */
export function treeOf(steps: readonly Step[], stepBars: readonly Bar[], alikeOf: AlikeOf | null): Branch[] {
  const rows = inSpans(steps, stepBars)
  // Open branches, each deeper than the previous one.
  const open: Branch[] = []
  const close = (depth: number): void => {
    for (let last = open.at(-1); last && last.depth >= depth; last = open.at(-1)) {
      open.pop()
      const above = open.at(-1)
      if (!above) continue
      above.below += last.below + 1
      above.to = Math.max(above.to, last.to)
      add(above, last)
    }
  }
  if (alikeOf === null) return rows
  for (const row of rows) {
    close(row.depth)
    open.push(row)
  }
  close(0)
  countLoops(rows, alikeOf)
  return rows
}

const barOf = (stepBars: readonly Bar[], { index, time }: Step): Bar =>
  stepBars[index] ?? { from: time, to: time, depth: 0 }

function add(sum: Branch, { tokens, cost }: Branch): void {
  sum.tokens += tokens
  sum.cost += cost
}

function countLoops(rows: readonly Branch[], alikeOf: AlikeOf): void {
  let at = 0
  while (at < rows.length) {
    const first = rows[at] as Branch
    let end = at + 1
    while (first.below === 0 && isAgain(first, rows[end], alikeOf)) end++
    if (end - at >= LOOP) {
      first.times = end - at
      for (const row of rows.slice(at + 1, end)) {
        first.to = Math.max(first.to, row.to)
        add(first, row)
      }
    }
    at = end
  }
}

function isAgain(first: Branch, other: Branch | undefined, alikeOf: AlikeOf): boolean {
  if (other === undefined || other.below > 0 || other.depth !== first.depth) return false
  const { eventType, label } = first.step
  return other.step.eventType === eventType && other.step.label === label && alikeOf(other.step) === alikeOf(first.step)
}

interface Span {
  from: number
  /** The span's own steps, and the spans inside it. */
  parts: { from: number; part: Step | Span }[]
}

function inSpans(steps: readonly Step[], stepBars: readonly Bar[]): Branch[] {
  const spans = new Map<string, Span>()
  const parents = new Map<string, string>()
  const root: Span = { from: 0, parts: [] }
  for (const step of steps) {
    // A step that closes a span is drawn from its start, but placed at its end.
    const from = step.latency === null ? step.time : barOf(stepBars, step).from
    const { spanId, parentSpanId } = step
    if (spanId === null) {
      root.parts.push({ from, part: step })
      continue
    }
    const span = spans.get(spanId) ?? { from, parts: [] }
    spans.set(spanId, span)
    span.from = Math.min(span.from, from)
    span.parts.push({ from, part: step })
    if (parentSpanId !== null && !parents.has(spanId)) parents.set(spanId, parentSpanId)
  }
  cutCircles(parents)
  for (const [spanId, span] of spans) {
    // A span does not begin before its parent's first step.
    const above = spans.get(parents.get(spanId) ?? '')
    ;(above ?? root).parts.push({ from: Math.max(span.from, above?.from ?? span.from), part: span })
  }
  return flat(root, stepBars)
}

/** Breaks cycles, because spans may name each other as parents. One of the spans then moves to the top. */
function cutCircles(parents: Map<string, string>): void {
  const known = new Set<string>()
  for (const spanId of parents.keys()) {
    const path = new Set<string>()
    let at: string | undefined = spanId
    while (at !== undefined && !known.has(at) && !path.has(at)) {
      path.add(at)
      at = parents.get(at)
    }
    if (at !== undefined && path.has(at)) parents.delete(at)
    for (const one of path) known.add(one)
  }
}

/** Iterative, because spans can be nested thousands deep. */
function flat(root: Span, stepBars: readonly Bar[]): Branch[] {
  const rows: Branch[] = []
  const open: { span: Span; at: number; depth: number }[] = [{ span: sorted(root), at: 0, depth: 0 }]
  for (let top = open.at(-1); top; top = open.at(-1)) {
    const next = top.span.parts[top.at++]?.part
    if (next === undefined) open.pop()
    else if ('eventId' in next) rows.push(branchOf(next, Math.min(top.depth, DEEPEST), stepBars))
    // Do not indent the top level.
    else open.push({ span: sorted(next), at: 0, depth: top.span === root ? 0 : top.depth + 1 })
  }
  return rows
}

function branchOf(step: Step, depth: number, stepBars: readonly Bar[]): Branch {
  const { tokens, cost } = step
  const { to } = barOf(stepBars, step)
  return { step, depth, below: 0, to, tokens: tokens ?? 0, cost: cost ?? 0, times: 1, isClosed: false }
}

function sorted(span: Span): Span {
  span.parts.sort((a, b) => a.from - b.from)
  return span
}

/** Rows that a person folded or unfolded, by event id. */
interface Folds {
  closed: ReadonlySet<string>
  /** Loops that a person unfolded. */
  opened: ReadonlySet<string>
}

export const NO_FOLDS: Folds = { closed: new Set(), opened: new Set() }

/** The rows that are visible. The step that is open is never folded away. */
export function unfolded(rows: readonly Branch[], { closed, opened }: Folds, shown: string | undefined): Row[] {
  const seen: Row[] = []
  const place = shown === undefined ? -1 : rows.findIndex(({ step }) => step.eventId === shown)
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] as Branch
    const hidden = hiddenBy(row)
    const isFolded = row.times > 1 ? !opened.has(row.step.eventId) : closed.has(row.step.eventId)
    const isClosed = hidden > 0 && isFolded && !(place > at && place <= at + hidden)
    // Do not copy unchanged rows: a run has tens of thousands of them.
    seen.push(isClosed ? { ...row, isClosed } : row)
    if (isClosed) at += hidden
  }
  return seen
}

/** Number of steps that are hidden with it. */
const hiddenBy = ({ times, below }: Pick<Branch, 'times' | 'below'>): number => (times > 1 ? times - 1 : below)

export const isFoldable = (row: Branch): boolean => hiddenBy(row) > 0

/** Whether the branch or loop contains the step, after its first. */
export function covers(rows: readonly Branch[], { step, ...row }: Branch, eventId: string): boolean {
  const at = rows.findIndex((one) => one.step === step)
  return rows.slice(at + 1, at + 1 + hiddenBy(row)).some((one) => one.step.eventId === eventId)
}

/** The branch that begins with a step, or contains it. */
export function foldableAt(rows: readonly Branch[], { eventId }: Step): Branch | undefined {
  const place = rows.findIndex(({ step }) => step.eventId === eventId)
  return rows.slice(0, place + 1).findLast((row, at) => isFoldable(row) && place - at <= hiddenBy(row))
}

/** Folds an open row, and unfolds a closed one. */
export function turned({ step: { eventId }, times, isClosed }: Row, { closed, opened }: Folds): Folds {
  const one = new Set([eventId])
  if (times > 1) return { closed, opened: isClosed ? opened.union(one) : opened.difference(one) }
  return { closed: isClosed ? closed.difference(one) : closed.union(one), opened }
}

/** The steps as a tree, and its visible rows. `isFlat`: nothing is folded. */
export function useTree(
  steps: readonly Step[],
  stepBars: readonly Bar[],
  problems: readonly Problem[],
  /** Event id of the step that is open. */
  open: string | undefined,
  isFlat: boolean,
) {
  const [folds, setFolds] = useState(NO_FOLDS)
  const ends = useMemo(() => new Map(problems.map(({ eventId, word, why }) => [eventId, `${word} ${why}`])), [problems])
  const tree = useMemo(
    () => treeOf(steps, stepBars, isFlat ? null : ({ eventId }) => ends.get(eventId) ?? ''),
    [steps, stepBars, isFlat, ends],
  )
  const closedRows = useMemo(() => unfolded(tree, folds, undefined), [tree, folds])
  const inSight = useMemo(() => {
    return closedRows.length === tree.length ? null : new Set(closedRows.map(({ step }) => step.eventId))
  }, [closedRows, tree])
  // Reuse the rows if the open step is visible: new rows would render the whole list again with each press of j.
  const hidden = open === undefined || inSight === null || inSight.has(open) ? undefined : open
  const rows = useMemo(
    () => (hidden === undefined ? closedRows : unfolded(tree, folds, hidden)),
    [closedRows, tree, folds, hidden],
  )
  const turn = useCallback((row: Row) => setFolds((before) => turned(row, before)), [])
  return { tree, rows, turn }
}
