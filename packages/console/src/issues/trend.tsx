import type { IssueSummary } from '@tacho/contract/issues/issue.ts'
import { stateWord } from '../web/text/state-styles.ts'
import { State } from '../web/ui/state.tsx'
import { counted } from '../web/text/format.ts'

/** Detections per day of the last days. */
export function Trend({ days, className }: { days: readonly number[] | undefined; className?: string }) {
  if (!days) return <span className={`block ${className ?? 'h-6 w-24'}`} />
  const sum = days.reduce((all, one) => all + one, 0)
  return (
    <Spark
      counts={days}
      label={`${counted(sum, 'time')} in the last ${days.length} days, ${days.at(-1) ?? 0} in the last 24 hours`}
      {...(className && { className })}
    />
  )
}

/** Counts over time as bars. `label` describes them in words, for people who cannot see colour and height. */
interface Props {
  counts: readonly number[]
  label: string
  className?: string
}

const BAR = 4
const GAP = 1
const HEIGHT = 24

function Spark({ counts, label, className = 'h-6 w-24' }: Props) {
  const most = Math.max(1, ...counts)
  const width = counts.length * (BAR + GAP) - GAP
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="none"
      className={className}
    >
      <title>{label}</title>
      {counts.map((count, index) => {
        const height = count === 0 ? 1 : Math.max(3, (count / most) * HEIGHT)
        return (
          <rect
            key={index}
            x={index * (BAR + GAP)}
            y={HEIGHT - height}
            width={BAR}
            height={height}
            className={count === 0 ? 'fill-edge' : 'fill-accent'}
          />
        )
      })}
    </svg>
  )
}

/** Marks an issue that occurred again after it was resolved. */
export function RegressionChip({ issue: { regressions } }: { issue: Pick<IssueSummary, 'regressions'> }) {
  if (regressions === 0) return null
  return <State is="CAME_BACK">{stateWord('CAME_BACK') + (regressions > 1 ? ` ${regressions} times` : '')}</State>
}
