import { number, percent } from './format.ts'

export type Outcomes = Readonly<Record<'completed' | 'failed' | 'cancelled', number>>

export const endedOf = ({ completed, failed, cancelled }: Outcomes): number => completed + failed + cancelled

/** Failed runs among those that ended: a running one may still fail. Empty if none ended. */
export const failedShare = (of: Outcomes): string => percent(of.failed, endedOf(of))

/** How many runs failed, and their share. */
export function Failed({ of }: { of: Outcomes }) {
  if (of.failed === 0) return '0'
  return (
    <span className="text-red">
      {number(of.failed)} <span className="max-sm:hidden">({failedShare(of)})</span>
    </span>
  )
}
