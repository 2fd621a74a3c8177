import { SCORE_NAME_PATTERN } from '@tacho/contract/engine/words.ts'
import { typedScore } from '@tacho/contract/runs/run-text.ts'
import { useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { SelectField } from '../../web/ui/field.tsx'
import { FormDialog } from '../../web/ui/form-dialog.tsx'
import { lastName, rememberName, scoreNamesQuery, useJudging } from './queries.ts'

interface Props {
  environmentId: string
  runId: string
  /** The selected step; null: judge only the run. */
  step: { eventId: string; label: string } | null
  onClose: () => void
}

const NAME_CHARS = 64
const COMMENT_CHARS = 2_000
const VALUES = [
  ['yes', 'Good'],
  ['no', 'Bad'],
  ['', 'Other'],
] as const

/** A dialog to judge a run or its selected step. */
export function JudgeDialog({ environmentId, runId, step, onClose }: Props) {
  const id = useId()
  const { data: names = [] } = useQuery(scoreNamesQuery(environmentId))
  const [name, setName] = useState(lastName)
  const [choice, setChoice] = useState<string>('yes')
  const [other, setOther] = useState('')
  const [comment, setComment] = useState('')
  const [of, setOf] = useState(step === null ? 'run' : 'step')
  const { give } = useJudging(environmentId)
  const typed = choice === '' ? other.trim() : choice
  const isReady = typed !== '' && new RegExp(SCORE_NAME_PATTERN, 'u').test(name)
  const submit = () => {
    rememberName(name)
    const eventId = of === 'step' && step ? step.eventId : null
    const body = { name, value: typedScore(typed), comment: comment.trim() || null, eventId }
    give.mutate({ runId, body }, { onSuccess: onClose })
  }
  return (
    <FormDialog
      title="Judge"
      act="Judge"
      isReady={isReady}
      isBusy={give.isPending}
      error={give.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <div className="grid gap-3">
        <fieldset>
          <legend className="mb-1 text-sm font-medium">It is</legend>
          <div className="flex flex-wrap items-center gap-2">
            {VALUES.map(([value, word], index) => (
              <label key={word} className="field flex h-10 items-center gap-2">
                <input
                  type="radio"
                  name={id}
                  autoFocus={index === 0}
                  checked={choice === value}
                  onChange={() => setChoice(value)}
                  className="accent-accent"
                />
                {word}
              </label>
            ))}
            {choice === '' && (
              <input
                aria-label="A number or a word"
                placeholder="Number or word"
                maxLength={NAME_CHARS}
                value={other}
                onChange={(event) => setOther(event.target.value)}
                className="field h-10 min-w-0 flex-1 text-base"
              />
            )}
          </div>
        </fieldset>
        <div>
          <label htmlFor={`${id}-comment`} className="mb-1 block text-sm font-medium">
            Why (optional)
          </label>
          <textarea
            id={`${id}-comment`}
            rows={3}
            maxLength={COMMENT_CHARS}
            value={comment}
            onChange={(event) => setComment(event.target.value)}
            className="field h-auto w-full py-2 text-base"
          />
        </div>
        {step !== null && (
          <SelectField
            label="Of"
            value={of}
            options={[
              ['step', `the step: ${step.label}`],
              ['run', 'the whole run'],
            ]}
            onChange={setOf}
          />
        )}
        <div>
          <label htmlFor={`${id}-name`} className="mb-1 block text-sm font-medium">
            What you judge
          </label>
          <input
            id={`${id}-name`}
            list={`${id}-names`}
            maxLength={NAME_CHARS}
            value={name}
            onChange={(event) => setName(event.target.value)}
            className="field h-10 w-full text-base"
          />
          <datalist id={`${id}-names`}>
            {names.map((known) => (
              <option key={known.name} value={known.name} />
            ))}
          </datalist>
        </div>
      </div>
    </FormDialog>
  )
}
