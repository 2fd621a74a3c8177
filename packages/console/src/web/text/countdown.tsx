import { exact } from './format.ts'
import { useSecond } from './now.ts'

const SOON_MS = 5 * 60_000
const LAST_MS = 60_000

/** Time left until a deadline, by the second. */
export function Countdown({ until }: { until: string }) {
  const time = Date.parse(until)
  const left = time - useSecond()
  const tone = left < LAST_MS ? 'text-red font-semibold' : left < SOON_MS ? 'text-amber font-medium' : 'text-soft'
  return (
    <time dateTime={until} title={exact(time)} className={`tabular text-sm whitespace-nowrap ${tone}`}>
      {left <= 0 ? 'expired' : `${leftText(left)} left`}
    </time>
  )
}

/** `42 s`, `3 m 04 s`, `2 h 05 m`. */
function leftText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${two(Math.floor((seconds % 3_600) / 60))} m`
}
