/** Costs and failure rates, in the form of all tables. */
import { endedRuns, type Outcomes } from '@tacho/contract/runs/statistics.ts'
import { costNote, costText, type Costs } from './costs.ts'
import { number, percent } from './format.ts'

export function Cost({ of }: { of: Costs }) {
  const note = costNote(of)
  const text = costText(of)
  if (note === '' && text !== 'unknown') return text
  return (
    <span title={note || undefined} className={text === 'unknown' ? 'font-normal text-soft' : undefined}>
      {text}
    </span>
  )
}

/** The share of failed runs among the ended ones, because a running one may still fail. Empty if none ended. */
export const failedShare = (of: Outcomes): string => percent(of.failed, endedRuns(of))

/** The number and share of failed runs. */
export function Failed({ of }: { of: Outcomes }) {
  if (of.failed === 0) return '0'
  return (
    <span className="text-red">
      {number(of.failed)} <span className="max-sm:hidden">({failedShare(of)})</span>
    </span>
  )
}
