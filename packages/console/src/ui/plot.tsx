/** Values over time. Drag to zoom, double click to see all again, click to look behind a moment. */
import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

export interface Series {
  name: string
  /** Null: nothing is known of that time. */
  values: readonly (number | null)[]
}

interface Props {
  label: string
  /** Unix seconds, ascending. */
  times: readonly number[]
  series: readonly Series[]
  format: (value: number) => string
  /** The moment, in Unix seconds, and the series that was clicked at. */
  onPick: (time: number) => void
}

/** Told apart by colour and by dash; the table below names them in the same order. */
const STROKES = [
  { colour: '--color-accent', dash: [] },
  { colour: '--color-green', dash: [6, 3] },
  { colour: '--color-amber', dash: [2, 3] },
  { colour: '--color-violet', dash: [10, 4] },
  { colour: '--color-red', dash: [8, 3, 2, 3] },
  { colour: '--color-soft', dash: [1, 2] },
] as const
const HEIGHT = 280

export function Plot({ label, times, series, format, onPick }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const picked = useRef(onPick)
  const looks = useLooks()
  useEffect(() => {
    picked.current = onPick
  })
  useEffect(() => {
    const element = host.current
    if (!element || times.length === 0) return
    const colour = (name: string) => resolve(element, name)
    const axis = { stroke: colour('--color-soft'), grid: { stroke: colour('--color-line'), width: 1 } }
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        series: [
          {},
          ...series.map(({ name }, index) => {
            const { colour: name_, dash } = STROKES[index % STROKES.length] ?? STROKES[0]
            return {
              label: name,
              stroke: colour(name_),
              width: 2,
              dash: [...dash],
              points: { show: times.length < 3 },
              value: (_: uPlot, value: number | null) => (value === null ? '' : format(value)),
            }
          }),
        ],
        fmtDate: (template) => uPlot.fmtDate(withoutHalfDays(template)),
        axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(format) }],
        legend: { live: true },
        cursor: { drag: { x: true, y: false } },
        hooks: {
          // Without a pointer, the legend shows the newest values.
          setLegend: [(shown) => shown.cursor.idx ?? shown.setLegend({ idx: times.length - 1 }, false)],
        },
      },
      [[...times], ...series.map(({ values }) => [...values])],
      element,
    )
    const onClick = () => {
      const { idx } = plot.cursor
      const time = typeof idx === 'number' ? times[idx] : undefined
      // A drag zooms; it ends with a click too.
      if (time !== undefined && plot.select.width === 0) picked.current(time)
    }
    plot.over.addEventListener('click', onClick)
    const watcher = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    watcher.observe(element)
    return () => {
      watcher.disconnect()
      plot.destroy()
    }
  }, [times, series, format, looks])
  return <div ref={host} role="figure" aria-label={label} className="plot" />
}

/** A template of uPlot with 24 hours, the month before the day and dashes between them, as everywhere else. */
function withoutHalfDays(template: string): string {
  return template
    .replace('{M}/{D}/{YY}', '{YYYY}-{MM}-{DD}')
    .replace('{M}/{D}', '{MM}-{DD}')
    .replace(/\{h\}((?::\{\w+\})*)\{aa\}/, (_, rest: string) => `{HH}${rest || ':00'}`)
}

/** A canvas knows no variables. */
function resolve(element: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** Changes when the page turns light or dark. */
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
