/** A page of a list. */
export interface Page<Row> {
  rows: Row[]
  /** Whether rows follow: the page ended at its row limit or byte limit. */
  more: boolean
}

/** Keyset page over rows ordered by id (time-ordered UUIDs, or key ids). */
export interface PageById {
  limit: number
  /** Rows after this id; null for the first page. */
  after: string | null
}
