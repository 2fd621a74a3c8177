import { useEffect, useRef } from 'react'

/** A row of links that scrolls sideways shows the link of the page. Begins again when `place` changes. */
export function useActiveInSight(place: string) {
  const row = useRef<HTMLElement>(null)
  useEffect(() => {
    const element = row.current
    if (!element) return
    // Links grow when what they count arrives, and the last ones come with the person's role.
    const watcher = new ResizeObserver(() => bringIntoSight(element))
    const watch = () => {
      watcher.disconnect()
      for (const link of [element, ...element.children]) watcher.observe(link)
    }
    const links = new MutationObserver(watch)
    links.observe(element, { childList: true })
    watch()
    return () => {
      watcher.disconnect()
      links.disconnect()
    }
  }, [place])
  return row
}

function bringIntoSight(row: HTMLElement): void {
  const active = row.querySelector<HTMLElement>('[data-status=active]')
  if (!active) return
  // Not scrollIntoView, which would scroll the page too.
  const [at, within] = [active.getBoundingClientRect(), row.getBoundingClientRect()]
  row.scrollLeft += at.left - within.left - (within.width - at.width) / 2
}
