/** Compression of request bodies, where the runtime has it. */

/** Below this a body fits into a few packets, and compressing it saves nothing. */
const WORTH_BYTES = 4_096

/** The text as gzip, undefined when that is not possible or does not pay. */
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
