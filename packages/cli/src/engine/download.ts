/** Writes a streamed reply into a new file, completely or not at all. */
import { existsSync } from 'node:fs'
import { unreachable } from './server-trouble.ts'
import { failed } from './stop.ts'
import { writeNewFile } from './new-file.ts'

/** Fails before the server does the work; the write itself checks again. */
export function refuseExisting(file: string): void {
  if (existsSync(file)) throw failed(`${JSON.stringify(file)} already exists and is never overwritten.`)
}

/** `ending`: the last bytes of a complete file. `url`: of the server, for errors. Returns the size in bytes. */
export async function download(
  file: string,
  reply: AsyncIterable<Uint8Array>,
  { url, ending, onBytes = () => undefined }: { url: string; ending: string; onBytes?: (bytes: number) => void },
): Promise<number> {
  let bytes = 0
  let last = Buffer.alloc(0)
  const chunks = (async function* () {
    try {
      for await (const chunk of reply) {
        bytes += chunk.length
        last = Buffer.concat([last, chunk]).subarray(-ending.length)
        onBytes(bytes)
        yield chunk
      }
    } catch (error) {
      throw failed(`The connection was lost; the partial file was deleted. ${unreachable(url, error)}`)
    }
  })()
  await writeNewFile(file, chunks, () => {
    if (last.toString() !== ending) throw failed('The file arrived incomplete and was deleted: try again.')
  })
  return bytes
}
