/** `tacho runs export`: a run as a file. */
import { known } from '../engine/known.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { download, refuseExisting } from '../engine/download.ts'
import { printJson, printLine, spokenBytes } from '../engine/output.ts'
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
