import { LRUCache } from 'lru-cache'

const CACHE_BYTES = 8 * 1_048_576

export interface OpenRows<Row> {
  ofEvent: Row[]
  /** Loaded rows by place. Call `keep` with them after the commit. */
  loaded: Map<string, Row>
}

/** A cache of rows that many events name, by place. `rowChars`: characters of the texts that a row has besides its place. */
export function knownRows<Row extends object | number>(rowChars = 0) {
  const rows = new LRUCache<string, Row>({
    maxSize: CACHE_BYTES,
    sizeCalculation: (_, place) => entryBytes(place.length + rowChars),
  })
  return {
    async open<Event>(
      events: readonly Event[],
      placeOf: (event: Event) => string,
      find: (event: Event) => Promise<Row | null>,
      store: (missing: Event[]) => Promise<void>,
    ): Promise<OpenRows<Row>> {
      const unknown = new Map<string, Event>()
      // Entries may be evicted while this transaction waits for the database.
      const known = events.map((event) => {
        const place = placeOf(event)
        const row = rows.get(place)
        if (row === undefined) unknown.set(place, event)
        return row ?? place
      })
      const loaded = new Map<string, Row>()
      const missing = () => [...unknown].filter(([place]) => !loaded.has(place))
      const findKnown = async ([place, event]: [string, Event]) => {
        const row = await find(event)
        if (row !== null) loaded.set(place, row)
      }
      await Promise.all(missing().map(findKnown))
      if (loaded.size < unknown.size) {
        await store(missing().map(([, event]) => event))
        // This also finds rows that another transaction inserted at the same time.
        await Promise.all(missing().map(findKnown))
        if (loaded.size < unknown.size) throw new Error('A stored row is missing')
      }
      return { loaded, ofEvent: known.map((one) => (typeof one === 'string' ? loaded.get(one)! : one)) }
    },
    keep({ loaded }: OpenRows<Row>): void {
      for (const [place, row] of loaded) rows.set(ownText(place), row)
    },
    forget: () => rows.clear(),
  }
}

const ENTRY_BYTES = 500

/** Upper bound of the memory of an entry. `chars`: UTF-16 units of its texts. */
export function entryBytes(chars: number): number {
  return 2 * chars + ENTRY_BYTES
}

/** A copy that shares no memory: a slice of a batch, or a text joined from one, keeps the whole batch in memory. */
export function ownText(text: string): string {
  return Buffer.from(text).toString()
}
