/** Keyset page over rows ordered by id (time-ordered UUIDs, or key ids). */
export interface PageById {
  limit: number
  /** Rows after this id; null for the first page. */
  after: string | null
}
