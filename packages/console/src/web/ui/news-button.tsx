interface Props {
  /** Description of the change, such as `3 new runs`. Empty: no change. */
  text: string
  onShow: () => void
}

/** Shows the changes that a steady list holds back. It takes no room, so that no row moves when it appears. */
export function NewsButton({ text, onShow }: Props) {
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
