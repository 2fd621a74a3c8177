import { useEffect, useState } from 'react'

/** A button that copies a text, and confirms it for a moment. */
export function Copy({
  text,
  label = 'Copy',
  className = '',
}: {
  text: string | (() => string)
  label?: string
  className?: string
}) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(() => setState('idle'), 1_500)
    return () => clearTimeout(timer)
  }, [state])
  return (
    <button
      type="button"
      onClick={() => {
        const copying =
          navigator.clipboard?.writeText(typeof text === 'string' ? text : text()) ?? Promise.reject(new Error())
        copying.then(
          () => setState('copied'),
          () => setState('failed'),
        )
      }}
      className={`shrink-0 rounded px-1.5 py-1 text-xs font-medium whitespace-nowrap text-soft hover:bg-hover hover:text-ink ${className}`}
    >
      <span aria-live="polite">{state === 'copied' ? 'Copied' : state === 'failed' ? 'Select and copy' : label}</span>
    </button>
  )
}

/** Lines of code with a copy button. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div className="relative rounded-lg border border-line bg-side">
      <pre tabIndex={0} aria-label={label} className="p-3 pr-18 font-mono text-sm wrap-anywhere whitespace-pre-wrap">
        {text}
      </pre>
      <Copy text={text} className="absolute top-2 right-2 border border-line bg-raised" />
    </div>
  )
}
