import type { NewPrice } from '@tacho/contract/runs/price.ts'

export interface PriceRow {
  model: string
  rates: Omit<NewPrice, 'model'>
  changedAt: number
}

export interface UncostedWindow {
  from: number
  to: number
  agentId: string | null
}
