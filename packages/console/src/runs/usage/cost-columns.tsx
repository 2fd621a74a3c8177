/** Cost columns: cost per run, and the change since the previous period. */
import { costsOf, wholeCost } from '../../web/text/costs.ts'
import { money } from '../../web/text/format.ts'
import { Cost } from '../../web/text/figures.tsx'
import type { Column } from '../../web/ui/data-table.tsx'
import { changeText, costChange, NEAR, times, whyText, type CostChange, type Costing } from './cost-change.ts'

interface ChangeProps {
  of: CostChange
  /** Name of the period, such as `the 7 days before`. */
  period: string
  costBefore: number
}

function Change({ of, period, costBefore }: ChangeProps) {
  const isDearer = of.cost > 1 + NEAR
  const all = `runs ${times(of.runs)}, tokens a run ${times(of.tokens)}, price of a token ${times(of.price)}`
  return (
    <span title={`${money(costBefore)} in ${period}: ${all}`}>
      <span className={isDearer ? 'font-medium text-amber' : ''}>
        {isDearer && <span aria-hidden>▲ </span>}
        {changeText(of.cost)}
      </span>
      <span className="block text-xs text-soft max-sm:hidden">{whyText(of)}</span>
    </span>
  )
}

/** Cost per run, and the change of the cost with its reasons. `before`: the previous period, by key. */
export function costColumns<Sum extends Costing & { key: string }>(
  before: ReadonlyMap<string, Costing>,
  period: string,
): [perRun: Column<Sum>, change: Column<Sum>] {
  return [
    {
      head: 'Cost a run',
      right: true,
      wide: true,
      cell: (sum) =>
        sum.runs > 0 && wholeCost(costsOf(sum)) > 0 ? (
          money(wholeCost(costsOf(sum)) / sum.runs)
        ) : (
          <Cost of={costsOf(sum)} />
        ),
    },
    {
      head: 'Cost, change',
      right: true,
      cell(sum) {
        const earlier = before.get(sum.key)
        const change = costChange(sum, earlier)
        if (change === null || earlier === undefined) {
          const why = earlier === undefined ? `Nothing in ${period}` : 'A cost or a number of tokens is not known'
          return (
            <span className="text-soft" title={why}>
              –
            </span>
          )
        }
        return <Change of={change} period={period} costBefore={wholeCost(costsOf(earlier))} />
      },
    },
  ]
}
