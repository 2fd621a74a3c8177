/** A smaller body fits into a few packets, so compression saves nothing. */
const WORTH_BYTES = 4_096

/** Undefined if compression is not possible or not worthwhile. */
export async function gzip(pieces: string[]): Promise<Uint8Array | undefined> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (length < WORTH_BYTES || typeof CompressionStream === 'undefined') return undefined
  try {
    const stream = new Blob(pieces).stream().pipeThrough(new CompressionStream('gzip'))
    const packed = new Uint8Array(await new Response(stream).arrayBuffer())
    return packed.byteLength < length * 0.9 ? packed : undefined
  } catch {
    return undefined
  }
}
