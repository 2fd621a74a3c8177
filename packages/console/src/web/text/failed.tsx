import { endedRuns, type Outcomes } from '@tacho/contract/runs/statistics.ts'
import { number, percent } from './format.ts'

/** Failed runs among those that ended: a running one may still fail. Empty if none ended. */
export const failedShare = (of: Outcomes): string => percent(of.failed, endedRuns(of))

/** How many runs failed, and their share. */
export function Failed({ of }: { of: Outcomes }) {
  if (of.failed === 0) return '0'
  return (
    <span className="text-red">
      {number(of.failed)} <span className="max-sm:hidden">({failedShare(of)})</span>
    </span>
  )
}
