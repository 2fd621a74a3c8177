/** Active stops, with author and reason: on the Rollout page, and on the pages of agents, sessions and runs. */
import type { Stop } from '@tacho/contract/policies/stop.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Place } from '../../web/queries.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Time } from '../../web/text/times.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { runStopsQuery, stopName, stopsQuery } from './queries.ts'
import { Confirmed, ResumeDialog, StopDialog } from './stop-dialogs.tsx'

/** All stops in effect in an environment. */
export function Stops({ place }: { place: Place }) {
  const { id, name } = place.environment
  const { data, error } = useQuery(stopsQuery(id))
  const [isStopping, setStopping] = useState(false)
  return (
    <div id="stops">
      <Section
        title={`Stops in ${name}`}
        error={error && !data ? error : null}
        note={
          place.may('approver') && (
            <Button look="quiet" onClick={() => setStopping(true)}>
              Stop…
            </Button>
          )
        }
      >
        {data?.items.length === 0 && <Nothing>Nothing is stopped.</Nothing>}
        {data && data.items.length > 0 && (
          <div className="text-sm">
            <Confirmed environmentId={id} />
            <StopNotes place={place} stops={data.items} />
          </div>
        )}
      </Section>
      {isStopping && <StopDialog environmentId={id} subject={null} onClose={() => setStopping(false)} />}
    </div>
  )
}

interface StopNotesProps {
  place: Place
  stops: readonly Stop[]
}

export function StopNotes({ place, stops }: StopNotesProps) {
  const [resuming, setResuming] = useState<Stop | null>(null)
  if (stops.length === 0) return null
  return (
    <>
      <ul aria-label="Stops" className="mt-1.5 flex flex-col gap-1.5">
        {stops.map((stop) => (
          <li
            key={stop.id}
            className={`flex items-start gap-3 rounded-lg px-3 py-2 text-sm ${stop.resumedAt === null ? 'bg-red-wash text-red' : 'bg-side text-soft'}`}
          >
            <p className="min-w-0 flex-1 [overflow-wrap:anywhere]">
              <span aria-hidden>■ </span>
              <bdi className="font-medium">
                <ShownText text={stopName(stop)} />
              </bdi>{' '}
              {stop.resumedAt === null ? 'is' : 'was'} stopped by{' '}
              <bdi>
                <ShownText text={stop.stoppedBy} />
              </bdi>
              , <Time at={stop.stoppedAt} />:{' '}
              <bdi>
                <ShownText text={stop.reason} />
              </bdi>
              {stop.resumedAt !== null && (
                <>
                  {' · '}resumed by{' '}
                  <bdi>
                    <ShownText text={stop.resumedBy ?? ''} />
                  </bdi>
                  , <Time at={stop.resumedAt} />
                  {stop.resumeReason !== null && (
                    <>
                      {': '}
                      <bdi>
                        <ShownText text={stop.resumeReason} />
                      </bdi>
                    </>
                  )}
                </>
              )}
            </p>
            {stop.resumedAt === null && place.may('approver') && (
              <Button aria-label={`Resume ${stopName(stop)}`} onClick={() => setResuming(stop)}>
                Resume…
              </Button>
            )}
          </li>
        ))}
      </ul>
      {resuming && (
        <ResumeDialog environmentId={place.environment.id} stop={resuming} onClose={() => setResuming(null)} />
      )}
    </>
  )
}

/** Active stops of an agent or session. `names`: its id, and for an agent its name. */
export function StopsOf({ place, scope, names }: { place: Place; scope: 'agent' | 'session'; names: string[] }) {
  const { data } = useQuery(stopsQuery(place.environment.id))
  const stops = data?.items.filter((stop) => stop.scope === scope && names.includes(stop.target)) ?? []
  return <StopNotes place={place} stops={stops} />
}

/** The stops that affected a run while it ran. */
export function StopsOfRun({ place, runId }: { place: Place; runId: string }) {
  const { data = [] } = useQuery(runStopsQuery(place.environment.id, runId))
  return <StopNotes place={place} stops={data} />
}
