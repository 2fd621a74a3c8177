/** `tacho export --parquet`: runs or events as a file for analysis. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Input, OperatorClient } from '../engine/operator-client.ts'
import { printJson, printLine, spokenBytes } from '../engine/output.ts'
import { startProgress } from '../engine/progress.ts'
import { download, refuseExisting } from '../engine/download.ts'

export const PARQUET_TABLES = ['events', 'runs'] as const
export type ParquetTable = (typeof PARQUET_TABLES)[number]

export async function exportParquet(
  client: OperatorClient,
  input: Input<'exportParquet'>,
  { output, json }: { output?: string | undefined; json?: true },
): Promise<void> {
  if (output !== undefined) refuseExisting(output)
  const reply = await client.exportParquet(input)
  if (output === undefined) return pipeline(Readable.fromWeb(reply), process.stdout, { end: false })
  const progress = await startProgress('Export', null)
  const onBytes = (bytes: number) => progress.update(bytes, spokenBytes(bytes))
  const bytes = await download(output, reply, { url: client.url, ending: 'PAR1', onBytes })
  progress.end(`Export: ${spokenBytes(bytes)}`)
  if (json) printJson({ file: output, table: input.query.table, bytes })
  else printLine(`Export of ${input.query.table} written to ${output} (${spokenBytes(bytes)}).`)
}
