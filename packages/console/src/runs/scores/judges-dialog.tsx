import { kappaText, scoreText } from '@tacho/contract/runs/run-text.ts'
import type { ScoreAgreement } from '@tacho/contract/runs/score.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { timesOfRange, type Range } from '../../web/address.ts'
import { counted } from '../../web/text/format.ts'
import { Button } from '../../web/ui/button.tsx'
import { Dialog } from '../../web/ui/overlay.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { authorName, judgesQuery } from './queries.ts'
import { ScoreSumsTable } from './score-sums.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const DAYS_BY_DEFAULT = 92
const DAY_MS = 86_400_000

interface Props {
  environmentId: string
  name: string
  /** Period of the scores. Default: the last three months. */
  range: Range
  onClose: () => void
}

/** Scores by author, how far each two authors agree, and the runs that they judge differently. */
export function JudgesDialog({ environmentId, name, range, onClose }: Props) {
  const [now] = useState(Date.now)
  const { from, to } = timesOfRange(range, now)
  const window = {
    from: from ?? new Date(now - DAYS_BY_DEFAULT * DAY_MS).toISOString(),
    to: to ?? new Date(now + 1).toISOString(),
  }
  const { data, error } = useQuery(judgesQuery(environmentId, name, window))
  return (
    <Dialog title={`Judges of ${name}`} onClose={onClose} className="w-full max-w-3xl">
      <div className="max-h-[85dvh] overflow-y-auto p-5">
        <h2 className="text-lg font-semibold">
          Judges of <bdi>{name}</bdi>
        </h2>
        <ScoreSumsTable environmentId={environmentId} window={window} by="author" name={name} />
        <Section title="Agreement" error={error} note={data?.isCut ? 'not all: the latest' : undefined}>
          {data?.items.length === 0 && <Nothing>No two authors judged the same run.</Nothing>}
          {data?.items.map((pair) => (
            <Pair key={`${pair.one.kind} ${pair.one.id} ${pair.other.kind} ${pair.other.id}`} pair={pair} />
          ))}
        </Section>
        <div className="mt-4 text-right">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}

function Pair({ pair }: { pair: ScoreAgreement['items'][number] }) {
  const params = route.useParams()
  const { one, other, both, same, differences, hidden } = pair
  const more = both - same - hidden - differences.length
  return (
    <details className="border-b border-line py-1.5 text-sm">
      <summary>
        <bdi>{authorName(one)}</bdi> and <bdi>{authorName(other)}</bdi>: {kappaText(pair)}
      </summary>
      <ul className="mt-1 pl-4">
        {differences.map(({ runId, eventId, one: first, other: second }) => (
          <li key={`${runId} ${eventId ?? ''}`}>
            <Link
              to="/w/$workspace/$environment/runs/$runId"
              params={{ ...params, runId }}
              {...(eventId !== null && { search: { step: eventId } })}
              className="link"
            >
              <bdi>{runId}</bdi>
            </Link>
            {eventId !== null && ', a step'}: <bdi>{scoreText(first)}</bdi>, <bdi>{scoreText(second)}</bdi>
          </li>
        ))}
        {hidden > 0 && <li className="text-soft">{counted(hidden, 'difference')} of runs that you have not judged</li>}
        {more > 0 && <li className="text-soft">and {counted(more, 'difference')} more</li>}
      </ul>
    </details>
  )
}
