import { useMemo, type KeyboardEvent, type PointerEvent } from 'react'
import { duration, number } from '../ui/format.ts'
import type { Problem } from './problems.ts'
import type { Step } from './run-queries.ts'

interface Props {
  steps: readonly Step[]
  problems: readonly Problem[]
  selected: Step | null
  onSelect: (step: Step | undefined) => void
}

const BUCKETS = 240
const HEIGHT = 28

/** The whole run in one strip: where its steps lie in time, where its problems are, and where you are. */
export function Scrubber({ steps, problems, selected, onSelect }: Props) {
  // Scores come later, and are no part of what the run did.
  const acts = useMemo(() => steps.filter(({ eventType }) => eventType !== 'SCORE'), [steps])
  const start = acts[0]?.time ?? 0
  const span = Math.max(1, (acts.at(-1)?.time ?? 0) - start)
  const path = useMemo(() => densityPath(acts, start, span), [acts, start, span])
  const placeOf = ({ time }: Step) => Math.max(0, ((time - start) / span) * BUCKETS)
  // Elements that stay the same are not drawn again with each step.
  const ticks = useMemo(() => ticksOf(problems, start, span), [problems, start, span])

  function selectAt(event: PointerEvent<SVGSVGElement>): void {
    if (event.buttons === 0) return
    const box = event.currentTarget.getBoundingClientRect()
    const time = start + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * span
    onSelect(nearest(steps, time))
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
      onPointerDown={selectAt}
      onPointerMove={selectAt}
      onKeyDown={onKeyDown}
    >
      <path d={path} className="fill-edge" />
      {ticks}
      {selected && (
        <rect x={Math.min(placeOf(selected), BUCKETS - 1)} y={0} width={1} height={HEIGHT} className="fill-accent" />
      )}
    </svg>
  )
}

function ticksOf(problems: readonly Problem[], start: number, span: number) {
  const placed = problems
    .toSorted(byTone)
    .map(({ time, tone }) => [Math.round(((time - start) / span) * BUCKETS * 4) / 4, tone] as const)
  // Red last: where two problems share a place, the worse one shows.
  return [...new Map(placed)].map(([x, tone]) => (
    <rect
      key={x}
      x={Math.min(x, BUCKETS - 1)}
      y={0}
      width={0.8}
      height={HEIGHT}
      className={tone === 'red' ? 'fill-red' : 'fill-amber'}
    />
  ))
}

const byTone = (one: Problem, other: Problem) => Number(one.tone === 'red') - Number(other.tone === 'red')

/** One shape, however long the run is. */
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

/** By bisection: the steps are sorted by time. */
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
