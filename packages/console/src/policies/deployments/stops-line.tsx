/** A line on every page while the environment or an agent is stopped. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Time } from '../../web/text/times.tsx'
import { stopName, stopsQuery } from './queries.ts'

export function StopsLine({ environmentId }: { environmentId: string }) {
  const params = useParams({ from: '/w/$workspace/$environment' })
  const { data } = useQuery(stopsQuery(environmentId))
  const wide = data?.items.filter(({ scope }) => scope === 'environment' || scope === 'agent') ?? []
  const stop = wide.find(({ scope }) => scope === 'environment') ?? wide[0]
  if (stop === undefined) return null
  return (
    <aside
      aria-label="Stopped"
      className="flex items-baseline gap-x-3 bg-red-wash px-4 py-1.5 text-sm text-red print:hidden"
    >
      <p className="min-w-0 truncate">
        <span aria-hidden>■ </span>
        <bdi className="font-medium">
          <ShownText text={stopName(stop)} />
        </bdi>{' '}
        is stopped by{' '}
        <bdi>
          <ShownText text={stop.stoppedBy} />
        </bdi>
        , <Time at={stop.stoppedAt} />:{' '}
        <bdi>
          <ShownText text={stop.reason} />
        </bdi>
      </p>
      <Link
        to="/w/$workspace/$environment/rollout"
        params={params}
        hash="stops"
        className="link ml-auto shrink-0 whitespace-nowrap"
      >
        {wide.length > 1 ? `All ${wide.length} stops` : 'Stops'}
      </Link>
    </aside>
  )
}
