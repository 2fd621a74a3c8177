import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import type { Score } from '@tacho/contract/runs/score.ts'
import { runScoreText, scoreText } from '@tacho/contract/runs/run-text.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Place, meQuery } from '../../web/queries.ts'
import { Button } from '../../web/ui/button.tsx'
import { Chip } from '../../web/ui/chip.tsx'
import { State } from '../../web/ui/state.tsx'
import { Refused, Skeleton, Trouble } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/times.tsx'
import { authorName, scoresQuery, useJudging } from './queries.ts'

interface Props {
  place: Place
  run: OperatorRun
  onStep: (eventId: string) => void
}

/** The scores of the run on a line. It opens to show comments. */
export function RunScores({ place, run, onStep }: Props) {
  const [isOpen, setOpen] = useState(false)
  const { scores } = run
  if (scores.length === 0) return null
  return (
    <section aria-label="Scores" className="mt-2 text-sm">
      <div className="flex flex-wrap items-center gap-1.5">
        {scores.map((score) => (
          <ScoreChip key={score.name} score={score} />
        ))}
        <Button look="quiet" className="h-6 px-2" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide scores' : 'Who, and why'}
        </Button>
      </div>
      {isOpen && (
        <ScoreList
          place={place}
          runId={run.runId}
          isHidden={scores.some(({ hidden }) => hidden !== undefined)}
          onStep={onStep}
        />
      )}
    </section>
  )
}

/** A score as a chip. Yes and no have a sign and a colour; numbers and words have neither. */
export function ScoreChip({ score }: { score: OperatorRun['scores'][number] }) {
  const { name, kind, mean, count } = score
  const title = count === 1 ? name : `${name}: ${count} scores`
  const text = (
    <>
      <bdi>{name}</bdi> <bdi>{runScoreText(score)}</bdi>
    </>
  )
  if (kind === 'BOOLEAN' && mean !== null) {
    return (
      <State is={mean >= 0.5 ? 'GOOD' : 'BAD'} note={title}>
        {text}
      </State>
    )
  }
  return (
    <span title={title} className="inline-flex max-w-full">
      <Chip>{text}</Chip>
    </span>
  )
}

interface ListProps extends Omit<Props, 'run'> {
  runId: string
  isHidden: boolean
}

function ScoreList({ place, runId, isHidden, onStep }: ListProps) {
  const environmentId = place.environment.id
  const [blind, setBlind] = useState<'true' | 'false'>('true')
  const { data, error, refetch } = useQuery(scoresQuery(environmentId, runId, blind))
  const { data: me } = useQuery(meQuery)
  const { withdraw } = useJudging(environmentId)
  if (error) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Skeleton className="mt-2 h-16" />
  const mayWithdraw = ({ author, sentAs }: Score) => sentAs === null && (author.id === me?.id || place.may('admin'))
  return (
    <>
      <Refused error={withdraw.error} />
      <ul className="mt-1 max-h-60 overflow-y-auto border-t border-line">
        {data.map((score) => (
          <li key={score.id} className="flex flex-wrap items-baseline gap-x-3 border-b border-line py-1.5">
            <span className="font-medium">
              <bdi>{score.name}</bdi> <bdi>{scoreText(score.value)}</bdi>
            </span>
            {score.comment !== null && (
              <bdi className="min-w-0 basis-60 [overflow-wrap:anywhere] whitespace-pre-wrap">{score.comment}</bdi>
            )}
            <span className="ml-auto flex items-baseline gap-2 text-xs text-soft">
              {score.eventId !== null && (
                <button type="button" className="link" onClick={() => onStep(score.eventId ?? '')}>
                  its step
                </button>
              )}
              <bdi>{authorOf(score)}</bdi>
              <Time at={score.scoredAt} />
              {mayWithdraw(score) && (
                <button
                  type="button"
                  className="link"
                  disabled={withdraw.isPending}
                  onClick={() => withdraw.mutate({ runId, scoreId: score.id })}
                >
                  Withdraw
                </button>
              )}
            </span>
          </li>
        ))}
      </ul>
      {isHidden && blind === 'true' && (
        <p className="mt-1 text-soft">
          You see what others judged once you have judged the same.{' '}
          <button type="button" className="link" onClick={() => setBlind('false')}>
            Show it without judging
          </button>
        </p>
      )}
    </>
  )
}

function authorOf({ author, importedAt }: Score): string {
  return importedAt === null ? authorName(author) : `${authorName(author)} (imported)`
}
