import { Nothing, Section } from '../web/ui/section.tsx'
import { duration } from '../web/text/format.ts'
import { Skeleton } from '../web/ui/states.tsx'
import { useChangesBefore } from './queries.ts'

/** Deployments shortly before the first detection: often one of them is the cause. */
export function ChangesBefore({ environmentId, firstSeenAt }: { environmentId: string; firstSeenAt: string }) {
  const { data } = useChangesBefore(environmentId, firstSeenAt)
  const seen = Date.parse(firstSeenAt)
  return (
    <Section title="What changed before">
      {!data ? (
        <Skeleton className="h-12" />
      ) : data.changes.length === 0 ? (
        <Nothing>
          {data.isPartial
            ? 'Too many deployments since to look back that far.'
            : 'No prompt or policy was deployed in the week before the first detection.'}
        </Nothing>
      ) : (
        <ul>
          {data.changes.map(({ publication, kind, id, name, from, to, at, by, note }) => (
            <li key={`${publication} ${kind} ${id}`} className="border-b border-line py-1.5 text-sm last:border-0">
              <p>
                {kind === 'policy' ? 'Policy' : 'Prompt'} <bdi className="font-medium">{name}</bdi>{' '}
                <span className="text-soft">{changeText(from, to)}</span>
              </p>
              <p className="text-soft">
                {duration(seen - Date.parse(at))} before, by <bdi>{by}</bdi>
              </p>
              {note !== null && (
                <p dir="auto" className="text-soft">
                  {note}
                </p>
              )}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

/** Shows a change of version. Null means that no version was deployed. */
function changeText(from: string | null, to: string | null): string {
  if (from === null) return `deployed, version ${to ?? ''}`
  return to === null ? `removed, was version ${from}` : `version ${from} → ${to}`
}
