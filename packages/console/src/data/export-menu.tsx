import type { RunFilter } from '@tacho/contract/runs/operator-run.ts'
import { BASE } from '../web/api.ts'
import { MenuLink, Popover } from '../web/ui/overlay.tsx'

interface Props {
  environmentId: string
  /** Filter of the exported runs; empty: all runs. */
  filter: RunFilter
  className?: string
}

/** A link, so that the browser saves the stream directly: an export may be larger than memory. */
export function ExportMenu({ environmentId, filter, className = '' }: Props) {
  const givenFilters = Object.entries(filter).filter(([, value]) => value !== undefined)
  const href = (path: string, more: Record<string, string> = {}) => {
    const query = new URLSearchParams([
      ...givenFilters.map(([name, value]) => [name, String(value)]),
      ...Object.entries(more),
    ])
    return `${BASE}/operator/v1/environments/${environmentId}/export${path}${query.size === 0 ? '' : `?${query}`}`
  }
  return (
    <Popover label="Export" className={className} panelClassName="w-64 p-1">
      <MenuLink href={href('')}>JSON Lines, to import again</MenuLink>
      <MenuLink href={href('/parquet', { table: 'runs' })}>Runs as Parquet</MenuLink>
      <MenuLink href={href('/parquet', { table: 'events' })}>Events as Parquet</MenuLink>
    </Popover>
  )
}
