import { counted } from '../../web/text/format.ts'

interface Props {
  /** Runs that have come since the list was read. */
  news: number
  /** Runs of the list that match its filters no longer. */
  gone: number
  onShow: () => void
}

/** Takes no place, so that no row moves when it appears. */
export function NewRuns({ news, gone, onShow }: Props) {
  const parts = [news > 0 && counted(news, 'new run'), gone > 0 && `${counted(gone, 'run')} no longer matching`]
  const text = parts.filter((part) => part !== false).join(', ')
  return (
    <div aria-live="polite" className="sticky top-2 z-20 flex h-0 justify-center">
      {text !== '' && (
        <button
          type="button"
          onClick={() => {
            onShow()
            window.scrollTo({ top: 0 })
          }}
          className="h-7 rounded-full bg-accent-fill px-3 text-sm font-medium text-on-accent shadow"
        >
          {text}
        </button>
      )}
    </div>
  )
}
