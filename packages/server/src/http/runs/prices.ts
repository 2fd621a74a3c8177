import { DAY_MS, isoTime } from '../../storage/engine/times.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Price } from '@tacho/contract/runs/price.ts'
import { estimatorOf, tableName } from '../../prices/price-table.ts'
import { type PriceRow, TOKEN_PARTS } from '../../storage/runs/usage.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { refuseField } from '../web/field.ts'
import { windowOf } from './usage.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const TOO_MANY = refuse('conflict', `The workspace has reached its limit of ${LIMITS.prices} prices`)

export function pricesRoutes(deps: OperatorDeps): void {
  const { serve, storage, prices } = deps

  serve('listPrices', async ({ workspace }) => {
    const rows = await storage.listPrices(workspace.id)
    return { priceTable: tableName(prices, rows), items: rows.map(toPrice) }
  })

  serve('setPrice', async ({ body, workspace, at, audit }) => {
    const { model, call, longContext } = body
    const rates = {
      ...Object.fromEntries(TOKEN_PARTS.map((tokenPart) => [tokenPart, body[tokenPart]])),
      call,
      longContext,
    }
    const setRates = Object.fromEntries(Object.entries(rates).filter(([, rate]) => rate !== undefined))
    const row: PriceRow = { model, rates: setRates as PriceRow['rates'], changedAt: at }
    if ((await storage.setPrice(workspace.id, row, audit(model, setRates))) === 'too_many') return TOO_MANY
    return toPrice(row)
  })

  serve('removePrice', async ({ body: { model }, workspace, audit }) => {
    const row = await storage.removePrice(workspace.id, model, audit(model))
    return toPrice(foundOr(row, refuse('not_found', 'The workspace has no price for this model')))
  })

  serve('listUnpricedModels', async ({ query, environment }) => {
    const window = windowOf(query)
    if (window.to - window.from > LIMITS.unpricedDays * DAY_MS) {
      return refuseField('to', `must be at most ${LIMITS.unpricedDays} days after from`)
    }
    const sums = await storage.sumUncosted(environment.id, { ...window, agentId: null })
    const estimator = await estimatorOf(deps, environment.workspaceId, sums)
    const models = new Map<string, { model: string; calls: number; tokens: number; lastHour: number }>()
    for (const sum of sums) {
      if (estimator.hasPrice(sum)) continue
      const modelSum = models.get(sum.model) ?? { model: sum.model, calls: 0, tokens: 0, lastHour: 0 }
      modelSum.calls += sum.calls
      modelSum.tokens += TOKEN_PARTS.reduce((tokens, tokenPart) => tokens + sum[tokenPart], 0)
      modelSum.lastHour = Math.max(modelSum.lastHour, sum.at)
      models.set(sum.model, modelSum)
    }
    const most = [...models.values()].toSorted((a, b) => b.calls - a.calls)
    const items = most.slice(0, LIMITS.unpricedModels).map((each) => ({ ...each, lastHour: isoTime(each.lastHour) }))
    return { items, others: most.slice(LIMITS.unpricedModels).reduce((calls, each) => calls + each.calls, 0) }
  })
}

function toPrice({ model, rates, changedAt, damaged }: PriceRow): Price {
  return { model, ...rates, changedAt: isoTime(changedAt), ...(damaged && { damaged }) }
}
