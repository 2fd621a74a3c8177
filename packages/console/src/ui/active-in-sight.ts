import { useEffect, useRef } from 'react'

/** A row of links that scrolls sideways shows the link of the page. Begins again when `place` changes. */
export function useActiveInSight(place: string) {
  const row = useRef<HTMLElement>(null)
  useEffect(() => {
    const active = row.current?.querySelector<HTMLElement>('[data-status=active]')
    if (!row.current || !active) return
    // Not scrollIntoView, which would scroll the page too.
    row.current.scrollLeft = active.offsetLeft - (row.current.clientWidth - active.offsetWidth) / 2
  }, [place])
  return row
}
