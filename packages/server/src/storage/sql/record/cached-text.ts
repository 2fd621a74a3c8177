const ENTRY_BYTES = 500

/** Upper bound of the memory of an entry. `chars`: UTF-16 units of its texts. */
export function entryBytes(chars: number): number {
  return 2 * chars + ENTRY_BYTES
}

/** A copy that shares no memory: a slice of a batch, or a text joined from one, keeps the whole batch in memory. */
export function ownText(text: string): string {
  return Buffer.from(text).toString()
}
