/** Walks a list page by page. */
interface Page<Item> {
  readonly items: readonly Item[]
  readonly nextCursor: string | null
}

/** A list call, from a throwing client (`throwing`) or your own. */
type ListCall<Given, Item> = (given: Given) => Promise<Page<Item>>

/** Every item from the first page to the last. Requests each page when the previous one is used up. */
export async function* eachItem<Given extends object, Item>(
  call: ListCall<Given, Item>,
  callInput: Given,
): AsyncGenerator<Item> {
  const { query } = callInput as { query?: object }
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Page<Item> = await call(
      cursor === undefined ? callInput : { ...callInput, query: { ...query, cursor } },
    )
    yield* page.items
    cursor = page.nextCursor
  }
}

/** The whole list at once: for lists that people make, not for recorded data. */
export async function allItems<Given extends object, Item>(
  call: ListCall<Given, Item>,
  callInput: Given,
): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of eachItem(call, callInput)) all.push(item)
  return all
}

/** The first `most` items, and whether there are more. */
export async function taken<Element>(
  elements: AsyncIterable<Element>,
  most: number,
): Promise<{ items: Element[]; hasMore: boolean }> {
  const items: Element[] = []
  for await (const element of elements) {
    if (items.length === most) return { items, hasMore: true }
    items.push(element)
  }
  return { items, hasMore: false }
}
