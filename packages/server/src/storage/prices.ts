/** Prices of models that workspaces set. */
import type { NewPrice } from '@tacho/contract/operator/price.ts'

export interface PriceRow {
  model: string
  rates: Omit<NewPrice, 'model'>
  changedAt: number
}

export interface UncostedWindow {
  /** Starts of hours: `from` inclusive, `to` exclusive. */
  from: number
  to: number
  agentId: string | null
}
