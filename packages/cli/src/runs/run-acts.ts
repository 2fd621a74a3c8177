/** `tacho runs pin, unpin, export`: operations on one run. */
import { known } from '../engine/find-by-id.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { printable, printJson, printLine, spokenTime, spokenBytes } from '../engine/output.ts'
import { download, refuseExisting } from '../engine/files.ts'
import type { RunPlace } from './show.ts'

/** Pins or unpins a run. Retention keeps pinned runs. */

interface Pin {
  act: 'pinRun' | 'unpinRun'
  environmentId: string
  runId: string
}

export async function pinRun(
  client: OperatorClient,
  { act, environmentId, runId }: Pin,
  asJson: boolean,
): Promise<void> {
  const change = (id: string) => client[act]({ params: { environmentId, runId: id } })
  const run = await known('run', runId, { client, environmentId }, change)
  if (asJson) return printJson(run)
  const state = run.pinnedAt === null ? 'is not pinned' : `is pinned since ${spokenTime(run.pinnedAt)}`
  printLine(`Run ${printable(run.runId)} ${state}.`)
}

/** `tacho runs export`: a run as a file. */

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
