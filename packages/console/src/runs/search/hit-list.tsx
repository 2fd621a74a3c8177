/** Steps that a search found. Steps with the same text are grouped. */
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import type { SearchHit } from '@tacho/contract/runs/search.ts'
import { Marked } from '../../web/text/shown-text.tsx'
import { Time } from '../../web/text/times.tsx'
import { EventType } from '../event-type.tsx'
import { stepName } from '../page/notes.ts'
import { textOf, type HitGroup } from './hit-groups.ts'

const placeRoute = getRouteApi('/w/$workspace/$environment')

const LABEL_COMPARED = 60

interface Props {
  label: string
  groups: readonly HitGroup[]
  /** The group that was reached by keyboard. */
  current: HitGroup | undefined
}

export function HitList({ label, groups, current }: Props) {
  return (
    <ul aria-label={label}>
      {groups.map((group) => (
        <Hit key={`${group.hit.run.id} ${group.hit.event.eventId}`} group={group} isCurrent={group === current} />
      ))}
    </ul>
  )
}

function Hit({ group: { hit, others }, isCurrent }: { group: HitGroup; isCurrent: boolean }) {
  const { run, event, snippet } = hit
  // A user's message begins with its label, so show it only once.
  const isSaid =
    event.label !== '' && textOf(snippet).startsWith(event.label.replace(/…$/, '').slice(0, LABEL_COMPARED))
  const row = useRef<HTMLLIElement>(null)
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    if (isCurrent) row.current?.scrollIntoView({ block: 'nearest' })
  }, [isCurrent])
  return (
    <li
      ref={row}
      data-current={isCurrent}
      className="relative border-b border-line px-2 py-2.5 text-sm hover:bg-hover data-[current=true]:bg-accent-wash"
    >
      <div className="flex items-baseline gap-2">
        <span className="shrink-0">
          <EventType type={event.eventType} />
        </span>
        {/* The whole row opens the step. */}
        <StepLink
          hit={hit}
          className={`min-w-0 after:absolute after:inset-0 ${isSaid ? 'line-clamp-3 wrap-anywhere' : 'truncate font-medium'}`}
        >
          {isSaid ? <Marked parts={snippet} /> : event.label === '' ? event.eventType : stepName(event)}
        </StepLink>
        <span className="ml-auto shrink-0 text-soft">
          <Time at={event.timestamp} />
        </span>
      </div>
      {!isSaid && (
        <p className="mt-1 line-clamp-3 max-w-4xl wrap-anywhere">
          <bdi>
            <Marked parts={snippet} />
          </bdi>
        </p>
      )}
      <div className="mt-1 flex flex-wrap items-baseline gap-x-3 text-soft">
        <span className="min-w-0 truncate">
          <bdi>{run.agent.name}</bdi> · <bdi className="font-mono text-xs">{run.runId}</bdi>
        </span>
        {others.length > 0 && (
          <button
            type="button"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
            className="link relative z-10 min-h-6"
          >
            The same text {others.length === 1 ? 'once' : `${others.length} times`} more
          </button>
        )}
      </div>
      {isOpen && (
        <ul aria-label="Steps with the same text" className="relative z-10 mt-1 flex flex-col">
          {others.map((other) => (
            <li key={`${other.run.id} ${other.event.eventId}`} className="flex min-h-6 items-center gap-3 text-xs">
              <StepLink hit={other} className="link min-w-0 truncate font-mono">
                {other.run.runId}
              </StepLink>
              <span className="ml-auto shrink-0 text-soft">
                <Time at={other.event.timestamp} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}

function StepLink({
  hit: { run, event },
  className,
  children,
}: {
  hit: SearchHit
  className: string
  children: ReactNode
}) {
  const params = placeRoute.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ ...params, runId: run.runId }}
      search={{ step: event.eventId }}
      title={event.label}
      className={className}
    >
      <bdi>{children}</bdi>
    </Link>
  )
}
