import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react'
import { duration, number } from '../../web/text/format.ts'
import { isRed, type Problem } from './problems.ts'
import type { Step } from '../queries.ts'

interface Props {
  steps: readonly Step[]
  /** The whole period of the run. */
  whole: Range
  problems: readonly Problem[]
  selected: Step | null
  /** The visible part; null: all of it. */
  zoom: Range | null
  onSelect: (step: Step | undefined) => void
  onZoom: (range: Range | null) => void
}

const BUCKETS = 240
const HEIGHT = 28
/** A pointer that moves fewer pixels has clicked, not dragged. */
const DRAG_PX = 4
const WHEEL_POWER = 0.002

/** A strip of the whole run: its steps and problems over time, the selected step, and the visible part. */
export function Scrubber({ steps, whole, problems, selected, zoom, onSelect, onZoom }: Props) {
  const box = useRef<SVGSVGElement>(null)
  const [drag, setDrag] = useState<{ x: number; from: number; to: number } | null>(null)
  const start = whole.from
  const span = Math.max(1, whole.to - whole.from)
  // Leave out scores, which come later and are not the run's own steps.
  const acts = useMemo(() => steps.filter(({ eventType }) => eventType !== 'SCORE'), [steps])
  const path = useMemo(() => densityPath(acts, start, span), [acts, start, span])
  const placeOf = (time: number) => Math.max(0, ((time - start) / span) * BUCKETS)
  // Memoised, so that they are not rendered again with each step.
  const ticks = useMemo(() => ticksOf(problems, start, span), [problems, start, span])
  const dragged =
    drag && drag.from !== drag.to ? { from: Math.min(drag.from, drag.to), to: Math.max(drag.from, drag.to) } : null
  const marked = dragged ?? zoom

  const timeAt = (clientX: number, { left, width }: DOMRect): number =>
    start + Math.min(1, Math.max(0, (clientX - left) / width)) * span

  // React's wheel listeners are passive, so the page would scroll too.
  useEffect(() => {
    const element = box.current
    const onWheel = (event: WheelEvent) => {
      event.preventDefault()
      const { left, width } = (event.currentTarget as Element).getBoundingClientRect()
      const at = whole.from + ((event.clientX - left) / width) * (whole.to - whole.from)
      onZoom(zoomed(zoom ?? whole, whole, at, Math.exp(event.deltaY * WHEEL_POWER)))
    }
    element?.addEventListener('wheel', onWheel, { passive: false })
    return () => element?.removeEventListener('wheel', onWheel)
  }, [whole, zoom, onZoom])

  function onPointerDown(event: PointerEvent<SVGSVGElement>): void {
    if (event.button !== 0) return
    event.currentTarget.setPointerCapture(event.pointerId)
    const at = timeAt(event.clientX, event.currentTarget.getBoundingClientRect())
    setDrag({ x: event.clientX, from: at, to: at })
  }

  function onPointerMove(event: PointerEvent<SVGSVGElement>): void {
    if (drag === null || Math.abs(event.clientX - drag.x) < DRAG_PX) return
    setDrag({ ...drag, to: timeAt(event.clientX, event.currentTarget.getBoundingClientRect()) })
  }

  function onPointerUp(): void {
    setDrag(null)
    if (dragged) onZoom(within(dragged, whole))
    else if (drag) onSelect(nearest(acts, drag.from))
  }

  function onKeyDown(event: KeyboardEvent): void {
    const at = selected?.index ?? -1
    const target = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: steps.length - 1 }[event.key]
    if (target === undefined) return
    event.preventDefault()
    onSelect(steps[Math.max(0, target)])
  }

  return (
    <svg
      ref={box}
      role="slider"
      tabIndex={0}
      aria-label="Step of the run"
      aria-valuemin={1}
      aria-valuemax={steps.length}
      aria-valuenow={(selected?.index ?? 0) + 1}
      aria-valuetext={`Step ${number((selected?.index ?? 0) + 1)} of ${number(steps.length)}, after ${duration((selected?.time ?? start) - start)}`}
      viewBox={`0 0 ${BUCKETS} ${HEIGHT}`}
      preserveAspectRatio="none"
      className="mt-3 block h-7 w-full cursor-crosshair touch-none rounded bg-side"
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerUp}
      onPointerCancel={() => setDrag(null)}
      onDoubleClick={() => onZoom(null)}
      onKeyDown={onKeyDown}
    >
      <title>Drag or turn the wheel to zoom, double-click for the whole run</title>
      <path d={path} className="fill-edge" />
      {ticks}
      {marked && (
        <path
          d={`M0 0H${placeOf(marked.from)}V${HEIGHT}H0zM${placeOf(marked.to)} 0H${BUCKETS}V${HEIGHT}H${placeOf(marked.to)}z`}
          className="fill-page opacity-75"
        />
      )}
      {selected && (
        <rect
          x={Math.min(placeOf(selected.time), BUCKETS - 1)}
          y={0}
          width={1}
          height={HEIGHT}
          className="fill-accent"
        />
      )}
    </svg>
  )
}

function ticksOf(problems: readonly Problem[], start: number, span: number) {
  const placed = problems
    .toSorted(byTone)
    .map((problem) => [Math.round(((problem.time - start) / span) * BUCKETS * 4) / 4, isRed(problem)] as const)
  // Draw red marks last: if two problems are at one position, the worse one is visible.
  return [...new Map(placed)].map(([x, red]) => (
    <rect
      key={x}
      x={Math.min(x, BUCKETS - 1)}
      y={0}
      width={0.8}
      height={HEIGHT}
      className={red ? 'fill-red' : 'fill-amber'}
    />
  ))
}

const byTone = (one: Problem, other: Problem) => Number(isRed(one)) - Number(isRed(other))

/** All steps as one SVG path, for runs of any length. */
function densityPath(steps: readonly Step[], start: number, span: number): string {
  const counts = Array.from({ length: BUCKETS }, () => 0)
  for (const { time } of steps) {
    const bucket = Math.min(BUCKETS - 1, Math.floor(((time - start) / span) * BUCKETS))
    counts[bucket] = (counts[bucket] ?? 0) + 1
  }
  const most = Math.max(1, ...counts)
  return counts
    .map((count, x) => {
      const height = (5 + Math.sqrt(count / most) * (HEIGHT - 8)).toFixed(1)
      return count === 0 ? '' : `M${x} ${HEIGHT}v-${height}h.85v${height}z`
    })
    .join('')
}

/** The nearest step, by bisection, because the steps are sorted by time. */
function nearest(steps: readonly Step[], time: number): Step | undefined {
  let [low, high] = [0, steps.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((steps[middle]?.time ?? 0) < time) low = middle + 1
    else high = middle
  }
  const [before, after] = [steps[low - 1], steps[low]]
  return before && after && time - before.time < after.time - time ? before : (after ?? before)
}

/** The visible part of a run's time. Pure. */

/** A range in Unix milliseconds. */
export interface Range {
  from: number
  to: number
}

/** The shortest range to zoom into: step times have whole milliseconds. */
const SHORTEST_MS = 2

/** A range that is `times` as long, with the moment `at` in the same place; null: the whole run. */
export function zoomed(range: Range, whole: Range, at: number, times: number): Range | null {
  const length = Math.max(SHORTEST_MS, (range.to - range.from) * times)
  const placeShare = (at - range.from) / Math.max(1, range.to - range.from)
  return within({ from: at - placeShare * length, to: at + (1 - placeShare) * length }, whole)
}

/** Moves a range into the run. Null: it covers all of the run. */
function within(range: Range, whole: Range): Range | null {
  const length = range.to - range.from
  if (length >= whole.to - whole.from) return null
  const from = Math.min(Math.max(range.from, whole.from), whole.to - length)
  return { from, to: from + length }
}
