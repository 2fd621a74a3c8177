/** Prices of models that workspaces set. */
import type { NewPrice } from '@tacho/contract/operator/price.ts'
import type { AuditEntry } from './audit.ts'
import type { UncostedSum } from './uncosted.ts'

export interface PriceStore {
  /** By model. */
  listPrices(workspaceId: string): Promise<PriceRow[]>
  /** `too_many`: the workspace has reached its limit. */
  setPrice(workspaceId: string, price: PriceRow, audit: AuditEntry[]): Promise<'set' | 'too_many'>
  /** Null: no such price. */
  removePrice(workspaceId: string, model: string, audit: AuditEntry[]): Promise<PriceRow | null>
  /**
   * Calls without a cost in a window of whole hours, by model and time; of one agent, if given by its internal id.
   * `stepMs`: the longest time that one sum covers.
   */
  sumUncosted(environmentId: string, window: UncostedWindow): Promise<UncostedSum[]>
}

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
