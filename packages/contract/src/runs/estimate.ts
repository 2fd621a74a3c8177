import Type from 'typebox'
import { nullableText } from '../web/fields.ts'

/** What calls without a cost of their own cost by the price table. `usage.cost` is only what clients sent. */
export const ESTIMATE = {
  estimatedCost: Type.Unsafe<number | null>({
    type: ['number', 'null'],
    minimum: 0,
    description:
      'What the calls without a cost probably cost, in US dollars by the price table; null if none of them has a price. Add it to usage.cost for the whole',
  }),
  priceTable: nullableText(
    'Name and version of the price table behind estimatedCost, with a digest of the prices of the workspace; null if there is nothing to estimate',
  ),
  unpricedCalls: Type.Integer({
    minimum: 0,
    description: 'Calls without a cost whose model has no price: estimatedCost leaves them out',
  }),
}

export interface EstimateFields {
  estimatedCost: number | null
  priceTable: string | null
  unpricedCalls: number
}
