/** What a client needs of a routes table's row at run time. The shapes are only types and cost nothing. */
export interface Endpoint {
  /** Default: GET. */
  method?: 'POST'
  /** Below the prefix; parameters in braces. */
  path: string
  /** Status of success; default 200. */
  status?: number
  /** How to read the reply; default JSON. */
  reply?: 'bytes' | 'events'
  /** It accepts an Idempotency-Key. */
  creates?: true
}
