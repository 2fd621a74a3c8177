/** Compresses request bodies if the runtime can. */

/** A smaller body fits into a few packets, so compression saves nothing. */
const WORTH_BYTES = 4_096

/** The text as gzip; undefined if compression is not possible or not worthwhile. */
export async function gzip(text: string): Promise<Uint8Array | undefined> {
  if (text.length < WORTH_BYTES || typeof CompressionStream === 'undefined') return undefined
  try {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
    const packed = new Uint8Array(await new Response(stream).arrayBuffer())
    return packed.byteLength < text.length * 0.9 ? packed : undefined
  } catch {
    return undefined
  }
}
