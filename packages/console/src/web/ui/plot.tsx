/**
 * Values over time: stacked bars for values that add up, lines for others. Drag to zoom, double click to reset, click
 * to open the step's items.
 */
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { weakestMark, type CostMark } from '@tacho/contract/runs/run-text.ts'
import { flushSync } from 'react-dom'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { exact, monthOfYear } from '../text/format.ts'
import { useIsPrinting } from './printing.ts'
import type { Series, SeriesColour } from './chart-series.ts'

const SWATCHES: Record<SeriesColour, string> = {
  accent: 'bg-accent',
  cyan: 'bg-cyan',
  pink: 'bg-pink',
  olive: 'bg-olive',
  violet: 'bg-violet',
  edge: 'bg-edge',
  green: 'bg-green',
  red: 'bg-red',
  soft: 'bg-soft',
}

/** The sum of the previous period, which has the same length. */
export interface Before {
  sum: number
  mark?: CostMark
  /** Name of the period, such as "the 7 days before". */
  period: string
}

interface Props {
  label: string
  /** Unit of the value axis, such as `Cost`. */
  unit: string
  /** Ascending Unix seconds of all steps. */
  times: readonly number[]
  stepSeconds: number
  /** The first series is at the bottom. */
  series: readonly Series[]
  /** Draws lines, for values that do not add up over series or time. */
  areLines?: boolean
  format: (value: number) => string
  before?: Before | undefined
  /** Times in milliseconds at which to draw a line. */
  lines?: readonly number[]
  /** Content above the plot, as wide as its time axis. `placeOf` returns a time's share of the width; null: outside. */
  above?: (placeOf: (time: number) => number | null) => ReactNode
  /** Called with the start of the clicked step, in Unix seconds. */
  onPick: (time: number) => void
}

const HEIGHT = 280
/** Printable width in pixels of the narrowest usual paper. */
const PAPER_PX = 640
const DAY_SECONDS = 86_400
/** Names of months, as in all other dates. */
const MONTHS = Array.from({ length: 12 }, (_, month) => monthOfYear(new Date(2026, month, 15)))
const LABEL_PX = 12

export function Plot(props: Props) {
  const { label, times, stepSeconds, series, areLines = false, format, lines = NO_LINES, above, onPick } = props
  const host = useRef<HTMLDivElement>(null)
  const picked = useRef(onPick)
  const drawn = useRef<{ plot: uPlot | null; lines: readonly number[] }>({ plot: null, lines })
  const [at, setAt] = useState<number | null>(null)
  const [axisShown, setAxisShown] = useState<ShownAxis | null>(null)
  const looks = useLooks()
  const isPrinting = useIsPrinting()
  useEffect(() => {
    picked.current = onPick
  })
  useEffect(() => {
    drawn.current.lines = lines
    drawn.current.plot?.redraw(false)
  }, [lines])
  useEffect(() => {
    const element = host.current
    if (!element || times.length === 0) return
    // For printing, use the light colours, because paper is white. The browser takes its picture immediately.
    const colour = (name: string) => resolve(element, `--color-${name}`, isPrinting)
    const showAxis: typeof setAxisShown = isPrinting ? (change) => flushSync(() => setAxisShown(change)) : setAxisShown
    const width = () => (isPrinting ? Math.min(PAPER_PX, element.clientWidth) : element.clientWidth)
    const axis = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 } }
    const heights = areLines ? series.map(({ values }) => [...values]) : stacked(series)
    const stacks = series.map((one, index) => ({ one, heights: heights[index] ?? [] }))
    // Draw the highest stack first, because lower ones are drawn over it.
    if (!areLines) stacks.reverse()
    // Leave out the current year: otherwise the first date of a chart would overlap the next one.
    const isThisYear = new Date((times[0] ?? 0) * 1_000).getFullYear() === new Date().getFullYear()
    const barPaths = uPlot.paths.bars?.({ size: [0.85, 64], align: 0 })
    const plot = new uPlot(
      {
        width: width(),
        height: HEIGHT,
        series: [
          {},
          ...stacks.map(({ one }) => ({
            label: one.name,
            stroke: colour(one.colour),
            width: areLines ? 2 : 0,
            ...(areLines ? { points: { show: true, size: 5 } } : { fill: colour(one.colour), points: { show: false } }),
            ...(!areLines && barPaths && { paths: barPaths }),
          })),
        ],
        scales: {
          // Add half a step on each side, so that the first and last bars are as wide as the others.
          x: { range: (_, from, to) => [from - stepSeconds / 2, to + stepSeconds / 2] },
          y: { range: (_, _from, to) => [0, to > 0 ? to * 1.1 : 1] },
        },
        fmtDate: (template) =>
          uPlot.fmtDate(withoutHalfDays(template, isThisYear), { MMMM: MONTHS, MMM: MONTHS, WWWW: [], WWW: [] }),
        axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(format) }],
        legend: { show: false },
        cursor: { drag: { x: true, y: false }, points: { show: areLines } },
        hooks: {
          setCursor: [({ cursor: { idx } }) => setAt(typeof idx === 'number' ? idx : null)],
          draw: [
            (shown) => {
              const next = shownAxis(shown, areLines ? 0 : stepSeconds / 2)
              showAxis((last) => (last !== null && isSameAxis(last, next) ? last : next))
              drawLines(shown, drawn.current.lines, next, colour('accent'))
              if (!areLines) labelHighest(shown, (value, at) => markAt(series, at) + format(value), colour('ink'))
            },
          ],
        },
      },
      [[...times], ...stacks.map((one) => one.heights)],
      element,
    )
    const onClick = () => {
      const { idx } = plot.cursor
      const time = typeof idx === 'number' ? times[idx] : undefined
      // A drag also ends with a click, so ignore it after a selection.
      if (time !== undefined && plot.select.width === 0) picked.current(time)
    }
    drawn.current.plot = plot
    plot.over.addEventListener('click', onClick)
    const watcher = new ResizeObserver(() => plot.setSize({ width: width(), height: HEIGHT }))
    watcher.observe(element)
    return () => {
      watcher.disconnect()
      drawn.current.plot = null
      plot.destroy()
      setAt(null)
    }
  }, [times, stepSeconds, series, areLines, format, looks, isPrinting])
  return (
    <figure aria-label={label}>
      <Legend {...props} at={at} />
      {axisShown !== null && above !== undefined && (
        <div style={{ marginLeft: axisShown.left, width: axisShown.width }}>
          {above((time) => placeOn(axisShown, time))}
        </div>
      )}
      <p className="tabular text-xs text-soft">
        {props.unit} per {stepSeconds < DAY_SECONDS ? 'hour' : 'day'}
      </p>
      <div ref={host} className="plot" />
    </figure>
  )
}

const NO_LINES: readonly number[] = []

/** The visible time axis: its position in pixels, and Unix seconds at its ends. */
interface ShownAxis {
  left: number
  width: number
  min: number
  max: number
}

/** Bars are centred in their step: `shift` seconds after its start. */
function shownAxis({ bbox, scales }: uPlot, shift: number): ShownAxis {
  const { min, max } = scales['x'] ?? {}
  const ratio = window.devicePixelRatio
  return { left: bbox.left / ratio, width: bbox.width / ratio, min: (min ?? 0) + shift, max: (max ?? 0) + shift }
}

const isSameAxis = (a: ShownAxis, b: ShownAxis): boolean =>
  a.left === b.left && a.width === b.width && a.min === b.min && a.max === b.max

function placeOn({ min, max }: ShownAxis, time: number): number | null {
  const place = (time / 1_000 - min) / (max - min)
  return place >= 0 && place <= 1 ? place : null
}

function drawLines({ ctx, bbox }: uPlot, lines: readonly number[], axis: ShownAxis, colour: string): void {
  const ratio = window.devicePixelRatio
  ctx.save()
  ctx.strokeStyle = colour
  ctx.lineWidth = ratio
  ctx.setLineDash([3 * ratio, 3 * ratio])
  for (const time of lines) {
    const place = placeOn(axis, time)
    if (place === null) continue
    ctx.beginPath()
    ctx.moveTo(bbox.left + place * bbox.width, bbox.top)
    ctx.lineTo(bbox.left + place * bbox.width, bbox.top + bbox.height)
    ctx.stroke()
  }
  ctx.restore()
}

/** The upper end of each series, stacked on the earlier ones. */
function stacked(series: readonly Series[]): number[][] {
  let below: number[] = []
  return series.map(({ values }) => (below = values.map((value, at) => (value ?? 0) + (below[at] ?? 0))))
}

const markAt = (series: readonly Series[], at: number): CostMark =>
  weakestMark(series.map(({ marks }) => marks?.[at] ?? ''))

/** Writes the value of the highest bar above it. */
function labelHighest(plot: uPlot, format: (value: number, at: number) => string, colour: string): void {
  const [times = [], highest = []] = plot.data
  const { min = 0, max = 0 } = plot.scales['x'] ?? {}
  let best = -1
  for (const [at, value] of highest.entries()) {
    const time = times[at] ?? 0
    if (time >= (min ?? 0) && time <= (max ?? 0) && (value ?? 0) > (highest[best] ?? 0)) best = at
  }
  const value = highest[best]
  if (value === undefined || value === null) return
  const { ctx } = plot
  const ratio = window.devicePixelRatio
  const text = format(value, best)
  ctx.save()
  ctx.font = `${LABEL_PX * ratio}px system-ui, sans-serif`
  ctx.fillStyle = colour
  ctx.textAlign = 'center'
  const half = ctx.measureText(text).width / 2
  const { left, width } = plot.bbox
  const x = plot.valToPos(times[best] ?? 0, 'x', true)
  const within = Math.min(Math.max(x, left + half), left + width - half)
  ctx.fillText(text, within, plot.valToPos(value, 'y', true) - 4 * ratio)
  ctx.restore()
}

/** Names, colours and sums of the series; while the pointer is over the plot, the values at that time. */
function Legend({ times, series, areLines = false, format, before, at }: Props & { at: number | null }) {
  const sumOf = ({ values }: Series) => values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
  const whole = series.reduce((sum, one) => sum + sumOf(one), 0)
  // A sum of zero means that no value was recorded, not that it was free.
  const sumText = (sum: number, mark: CostMark) => (sum === 0 ? 'nothing recorded' : mark + format(sum))
  const marksOf = ({ marks = [] }: Series) => (at === null ? weakestMark(marks) : (marks[at] ?? ''))
  const mark = weakestMark(series.map(marksOf))
  const valueOf = (one: Series) => {
    if (at !== null) return one.values[at] ?? null
    return areLines ? null : sumOf(one)
  }
  const time = at === null ? undefined : times[at]
  return (
    <div className="mb-1 flex min-h-10 flex-wrap items-baseline gap-x-4 gap-y-1 text-sm">
      {!areLines && (
        <p className="tabular mr-2">
          <span className="text-xl font-semibold">
            {at === null
              ? sumText(whole, mark)
              : mark + format(series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))}
          </span>
          {at === null && before && (
            <span className="ml-2 text-soft">
              {sumText(before.sum, before.mark ?? '')} in {before.period}
            </span>
          )}
        </p>
      )}
      {time !== undefined && <span className="tabular text-soft">{exact(time * 1_000)}</span>}
      <ul className="flex min-w-0 flex-wrap gap-x-4 gap-y-1">
        {series.map((one, index) => {
          const value = valueOf(one)
          return (
            <li key={index} className="flex max-w-64 min-w-0 items-center gap-1.5">
              <span aria-hidden className={`size-2.5 shrink-0 rounded-xs ${SWATCHES[one.colour]}`} />
              <bdi className="min-w-0 truncate" title={one.name}>
                {one.name}
              </bdi>
              {value !== null && <span className="tabular shrink-0 text-soft">{marksOf(one) + format(value)}</span>}
            </li>
          )
        })}
      </ul>
    </div>
  )
}

/** A date template of uPlot with a 24-hour clock and dates such as `Nov 3, 2026`. */
function withoutHalfDays(template: string, isThisYear: boolean): string {
  return template
    .replace('{M}/{D}/{YY}', isThisYear ? '{MMM} {D}' : '{MMM} {D}, {YYYY}')
    .replace('{M}/{D}', '{MMM} {D}')
    .replace(/\{h\}((?::\{\w+\})*)\{aa\}/, (_, hourRest: string) => `{HH}${hourRest || ':00'}`)
}

/** The value of a CSS variable, because a canvas cannot use variables. */
function resolve(element: HTMLElement, name: string, isLight: boolean): string {
  const probe = document.createElement('span')
  if (isLight) probe.style.colorScheme = 'light'
  probe.style.color = `var(${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** Returns a number that changes when the page turns light or dark. */
function useLooks(): number {
  const [looks, setLooks] = useState(0)
  useEffect(() => {
    const renew = () => setLooks((count) => count + 1)
    const system = window.matchMedia('(prefers-color-scheme: dark)')
    const chosen = new MutationObserver(renew)
    system.addEventListener('change', renew)
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => {
      system.removeEventListener('change', renew)
      chosen.disconnect()
    }
  }, [])
  return looks
}
