/** `tacho runs export`: a run as a file. */
import { existsSync } from 'node:fs'
import { known } from '../calls/known.ts'
import type { OperatorClient } from '../calls/operator-client.ts'
import { unreachable } from '../calls/server-trouble.ts'
import { failed } from '../stop.ts'
import { writeNewFile } from '../store/new-file.ts'
import { printJson, printLine, spokenBytes } from '../terminal/output.ts'
import type { RunPlace } from './show.ts'

/** The last bytes of a complete file. */
const END = '</html>\n'

export async function exportRun(
  client: OperatorClient,
  place: RunPlace,
  { html: file, payloads, json }: { html: string; payloads?: true; json?: true },
): Promise<void> {
  if (existsSync(file)) throw failed(`${JSON.stringify(file)} already exists and is never overwritten.`)
  const { environmentId } = place
  const query = payloads ? { payloads: 'true' as const } : {}
  const value = await known('run', place.runId, { client, environmentId }, (runId) =>
    client.exportRun({ params: { environmentId, runId }, query }),
  )
  let bytes = 0
  let last = Buffer.alloc(0)
  const chunks = (async function* () {
    try {
      for await (const chunk of value) {
        bytes += chunk.length
        last = Buffer.concat([last, chunk]).subarray(-END.length)
        yield chunk
      }
    } catch (error) {
      throw failed(`The connection was lost; the partial file was deleted. ${unreachable(client.url, error)}`)
    }
  })()
  await writeNewFile(file, chunks, () => {
    if (last.toString() !== END) throw failed('The file arrived incomplete and was deleted: try again.')
  })
  if (json) printJson({ file, bytes })
  else printLine(`Run written to ${file} (${spokenBytes(bytes)}).`)
}
