import { exact, relative } from './format.ts'
import { useNow } from './now.ts'

/** Relative, exact on hover, in the zone of the person. */
export function Time({ at }: { at: string }) {
  const now = useNow()
  const time = Date.parse(at)
  return (
    <time dateTime={at} title={exact(time)} className="tabular whitespace-nowrap">
      {relative(time, now)}
    </time>
  )
}
