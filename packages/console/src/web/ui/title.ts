import { useEffect } from 'react'

let title = 'Tacho'
/** The number of waiting approvals; the title of every page shows it. */
let waiting = 0

function showTitle(): void {
  document.title = waiting > 0 ? `(${waiting}) ${title}` : title
}

export function useTitle(name: string): void {
  useEffect(() => {
    title = `${name} · Tacho`
    showTitle()
  }, [name])
}

export function useTitleCount(count: number): void {
  useEffect(() => {
    waiting = count
    showTitle()
    return () => {
      waiting = 0
      showTitle()
    }
  }, [count])
}
