import { Copy } from './copy.tsx'

/** Lines to copy. */
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
