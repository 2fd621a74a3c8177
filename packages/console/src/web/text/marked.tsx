import type { SnippetPart } from '@tacho/contract/runs/search.ts'

/** Text with what a search found in it. */
export function Marked({ parts }: { parts: readonly SnippetPart[] }) {
  return parts.map(({ text, isHit }, at) =>
    isHit ? (
      <mark key={at} className="rounded-sm bg-amber-wash font-medium text-amber">
        {text}
      </mark>
    ) : (
      <span key={at}>{text}</span>
    ),
  )
}
