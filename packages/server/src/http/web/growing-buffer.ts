/** At most twice the size of its bytes: many small pieces would take hundreds of times that. */
export class GrowingBuffer {
  readonly #maxBytes: number
  readonly #expected: number
  #buffer: Buffer = Buffer.alloc(0)
  size = 0

  /** `expected` is only the sender's hint. */
  constructor(maxBytes: number, expected = 0) {
    this.#maxBytes = maxBytes
    this.#expected = expected
  }

  get capacity(): number {
    return this.#buffer.length
  }

  capacityFor({ length }: Buffer): number {
    const needed = this.size + length
    if (needed <= this.capacity) return this.capacity
    if (needed <= this.#expected && this.#expected <= 2 * needed) return this.#expected
    return Math.max(needed, Math.min(2 * this.capacity, this.#maxBytes))
  }

  append(piece: Buffer, capacity = this.capacityFor(piece)): void {
    if (capacity !== this.capacity) {
      // The usual body comes in one piece, which is kept unless it pins a much larger block of memory.
      if (capacity === piece.length && 2 * piece.length >= piece.buffer.byteLength) {
        this.#buffer = piece
        this.size = piece.length
        return
      }
      const grown = Buffer.allocUnsafeSlow(capacity)
      this.#buffer.copy(grown, 0, 0, this.size)
      this.#buffer = grown
    }
    piece.copy(this.#buffer, this.size)
    this.size += piece.length
  }

  content(): Buffer {
    return this.#buffer.subarray(0, this.size)
  }
}
