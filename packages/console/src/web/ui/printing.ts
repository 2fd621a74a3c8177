import { useEffect, useState } from 'react'
import { flushSync } from 'react-dom'

/** Whether the page is being printed. The browser captures the page right after its event, so render synchronously. */
export function useIsPrinting(): boolean {
  const [isPrinting, setPrinting] = useState(false)
  useEffect(() => {
    const paper = window.matchMedia('print')
    const show = () => flushSync(() => setPrinting(true))
    const hide = () => setPrinting(false)
    const turn = () => (paper.matches ? show() : hide())
    window.addEventListener('beforeprint', show)
    window.addEventListener('afterprint', hide)
    paper.addEventListener('change', turn)
    return () => {
      window.removeEventListener('beforeprint', show)
      window.removeEventListener('afterprint', hide)
      paper.removeEventListener('change', turn)
    }
  }, [])
  return isPrinting
}
