/** Fields of a routes table's row that a client needs at run time. The shapes are only types and cost nothing. */
export interface Endpoint {
  /** Default: GET. */
  method?: 'POST'
  /** Below the prefix; parameters in braces. */
  path: string
  /** Status of success; default 200. */
  status?: number
  /** How to read the reply; default JSON. */
  reply?: 'bytes' | 'events'
  /** The endpoint accepts an Idempotency-Key. */
  creates?: true
}
