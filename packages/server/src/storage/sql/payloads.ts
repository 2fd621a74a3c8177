/**
 * How payloads are read. Every reader selects PAYLOAD and passes its rows through `withPayloads`; none reads the column
 * itself. Sizes come first, as PAYLOAD_BYTES, because they are known without reading any payload.
 */
import type { Sql } from './sql.ts'

/** Size in bytes of the payload of the event `e`. */
export const PAYLOAD_BYTES = 'octet_length(e.payload)'

/** Selected as `payload` from the event `e`: a value for `withPayloads`, which no reader interprets. */
export const PAYLOAD = 'e.payload'

/** Whether the payload of the event `e` may contain a text, its parameter. The reader has to look again. */
export const mayContain = ({ dialect }: Pick<Sql, 'dialect'>) =>
  dialect === 'postgres' ? 'strpos(e.payload, ?) > 0' : 'instr(e.payload, ?) > 0'

/** The rows, in order, with the payload texts as sent. */
export async function withPayloads<Row extends { payload: string | null }>(
  _sql: Sql,
  _environmentId: string,
  rows: Row[],
): Promise<Row[]> {
  return rows
}
