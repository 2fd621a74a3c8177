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
