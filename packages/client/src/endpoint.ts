/** What a client needs to know of a row of a routes table while it runs. The shapes are types only, and cost nothing. */
export interface Endpoint {
  /** GET when absent. */
  method?: 'POST'
  /** Below the prefix; parameters in braces. */
  path: string
  /** Status of success; 200 when absent. */
  status?: number
  /** How the reply is read; as JSON when absent. */
  reply?: 'bytes' | 'events'
  /** It takes an Idempotency-Key. */
  creates?: true
}
