/** Walks a list page by page. */
interface Page<Item> {
  readonly items: readonly Item[]
  readonly nextCursor: string | null
}

/** A list's call, of a client that throws (`throwing`) or of the caller's own making. */
type ListCall<Given, Item> = (given: Given) => Promise<Page<Item>>

/** Every item from the first page to the last. Each page is asked for when the one before it has been used up. */
export async function* eachItem<Given extends object, Item>(
  call: ListCall<Given, Item>,
  given: Given,
): AsyncGenerator<Item> {
  const { query } = given as { query?: object }
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Page<Item> = await call(cursor === undefined ? given : { ...given, query: { ...query, cursor } })
    yield* page.items
    cursor = page.nextCursor
  }
}

/** The whole list at once: for lists that people make, not for what agents record. */
export async function allItems<Given extends object, Item>(call: ListCall<Given, Item>, given: Given): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of eachItem(call, given)) all.push(item)
  return all
}
