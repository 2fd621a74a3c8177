import { counted } from '../web/text/format.ts'
import { Spark } from './spark.tsx'

/** Detections of each of the last days. */
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
