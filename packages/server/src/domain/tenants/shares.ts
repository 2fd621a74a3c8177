/**
 * A workspace gets a share of the whole, and a key or operator a part of that share, so that none can use up the room
 * of others.
 */
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'

export interface ShareBounds {
  most: number
  ofWorkspace: number
  ofCredential: number
}

export class Shares {
  readonly bounds: ShareBounds
  used = 0
  readonly #workspaces = new Map<string, number>()
  readonly #credentials = new Map<string, number>()

  constructor(bounds: ShareBounds) {
    this.bounds = bounds
  }

  /** The first amount of a holder may exceed its share, but never the total. */
  fits(holder: Holder, amount: number): boolean {
    const { most, ofWorkspace, ofCredential } = this.bounds
    const inWorkspace = this.#workspaces.get(holder.workspace) ?? 0
    const credentialCount = this.#credentials.get(keyOf(holder)) ?? 0
    return (
      this.used + amount <= most &&
      (inWorkspace === 0 || inWorkspace + amount <= ofWorkspace) &&
      (credentialCount === 0 || credentialCount + amount <= ofCredential)
    )
  }

  add(holder: Holder, amount: number): void {
    this.used += amount
    grow(this.#workspaces, holder.workspace, amount)
    grow(this.#credentials, keyOf(holder), amount)
  }

  take(holder: Holder, amount: number): boolean {
    if (!this.fits(holder, amount)) return false
    this.add(holder, amount)
    return true
  }

  usedBy(workspace: string): number {
    return this.#workspaces.get(workspace) ?? 0
  }
}

function grow(counts: Map<string, number>, key: string, amount: number): void {
  const count = (counts.get(key) ?? 0) + amount
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}

const keyOf = ({ workspace, credential }: Holder): string => `${workspace} ${credential}`
