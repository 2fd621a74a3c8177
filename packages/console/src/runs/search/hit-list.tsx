import type { SearchHit } from '@tacho/contract/runs/search.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { EventType } from '../event-type.tsx'
import { Marked } from '../../web/text/marked.tsx'
import { Time } from '../../web/text/time.tsx'

const placeRoute = getRouteApi('/w/$workspace/$environment')

interface Props {
  items: readonly SearchHit[]
  /** The one that the keys have chosen. */
  current: SearchHit | undefined
}

export function HitList({ items, current }: Props) {
  return (
    <ul aria-label="Steps found">
      {items.map((hit) => (
        <Hit key={`${hit.run.id} ${hit.event.eventId}`} hit={hit} isCurrent={hit === current} />
      ))}
    </ul>
  )
}

function Hit({ hit: { run, event, snippet }, isCurrent }: { hit: SearchHit; isCurrent: boolean }) {
  const params = placeRoute.useParams()
  const row = useRef<HTMLLIElement>(null)
  useEffect(() => {
    if (isCurrent) row.current?.scrollIntoView({ block: 'nearest' })
  }, [isCurrent])
  return (
    <li
      ref={row}
      data-current={isCurrent}
      className="relative border-b border-line px-2 py-2.5 text-sm hover:bg-hover data-[current=true]:bg-accent-wash"
    >
      <div className="flex items-center gap-2">
        <EventType type={event.eventType} />
        <Link
          to="/w/$workspace/$environment/runs/$runId"
          params={{ ...params, runId: run.runId }}
          search={{ step: event.eventId }}
          title={event.label}
          // The whole row opens the step.
          className="min-w-0 truncate font-medium after:absolute after:inset-0"
        >
          <bdi>{event.label === '' ? event.eventType : event.label}</bdi>
        </Link>
        <span className="ml-auto shrink-0 text-soft">
          <Time at={event.timestamp} />
        </span>
      </div>
      <p className="mt-1 line-clamp-3 max-w-4xl wrap-anywhere">
        <bdi>
          <Marked parts={snippet} />
        </bdi>
      </p>
      <p className="mt-1 truncate text-soft">
        <bdi>{run.agent.name}</bdi> · <bdi className="font-mono text-xs">{run.runId}</bdi>
      </p>
    </li>
  )
}
