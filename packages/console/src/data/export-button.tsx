import type { RunFilter } from '@tacho/contract/operator/run.ts'

interface Props {
  environmentId: string
  /** Which runs; empty: all of them. */
  filter: RunFilter
  label: string
  className?: string
}

/** The browser saves the stream of the server as it comes: an export may be larger than memory. */
export function ExportButton({ environmentId, filter, label, className = '' }: Props) {
  const query = new URLSearchParams(Object.entries(filter).map(([name, value]) => [name, String(value)]))
  const href = `/operator/v1/environments/${environmentId}/export${query.size === 0 ? '' : `?${query}`}`
  return (
    <a
      href={href}
      download
      className={`inline-flex h-8 items-center rounded-md border border-edge bg-raised px-3 text-sm font-medium whitespace-nowrap hover:bg-hover ${className}`}
    >
      {label}
    </a>
  )
}
