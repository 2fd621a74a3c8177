/** `tacho runs export`: a run as a file. */
import { known } from '../calls/known.ts'
import type { OperatorClient } from '../calls/operator-client.ts'
import { download, refuseExisting } from '../export/download.ts'
import { printJson, printLine, spokenBytes } from '../terminal/output.ts'
import type { RunPlace } from './show.ts'

export async function exportRun(
  client: OperatorClient,
  place: RunPlace,
  { html: file, payloads, json }: { html: string; payloads?: true; json?: true },
): Promise<void> {
  refuseExisting(file)
  const { environmentId } = place
  const query = payloads ? { payloads: 'true' as const } : {}
  const reply = await known('run', place.runId, { client, environmentId }, (runId) =>
    client.exportRun({ params: { environmentId, runId }, query }),
  )
  const bytes = await download(file, reply, { url: client.url, ending: '</html>\n' })
  if (json) printJson({ file, bytes })
  else printLine(`Run written to ${file} (${spokenBytes(bytes)}).`)
}
