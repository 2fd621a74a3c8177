/** Dialogs that change an issue: assign, ignore, merge, split. */
import { useMutation, useQuery, keepPreviousData } from '@tanstack/react-query'
import { useDeferredValue, useId, useState } from 'react'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { allItems } from '@tacho/client/items.ts'
import { ISSUE_STATES } from '@tacho/contract/engine/words.ts'
import type { IssueState, IssueGroup, IssueSummary } from '@tacho/contract/issues/issue.ts'
import { api } from '../web/api.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { Choice } from '../web/ui/filters.tsx'
import { counted } from '../web/text/format.ts'
import { stateWord } from '../web/text/state-styles.ts'

/** An issue to act on, alone or together with others that were selected in the list. */
export type Target = Pick<IssueSummary, 'id' | 'title' | 'state' | 'assignee' | 'ignoredUntil' | 'affectedRuns'>

interface DialogProps<Answer> {
  targets: readonly Target[]
  act: (answer: Answer) => Promise<unknown>
  onClose: () => void
}

/** Runs the act and closes the dialog. */
function useAct<Answer>({ act, onClose }: DialogProps<Answer>) {
  return useMutation({ mutationFn: act, onSuccess: onClose })
}

const them = (targets: readonly Target[]): string =>
  targets.length === 1 ? '' : ` ${counted(targets.length, 'issue')}`

export function AssignDialog(props: DialogProps<string | null> & { workspaceId: string }) {
  const { targets, workspaceId, onClose } = props
  const current = targets.length === 1 ? (targets[0]?.assignee ?? null) : null
  const id = useId()
  const [name, setName] = useState(current ?? '')
  const { data: me } = useQuery(meQuery)
  const { data: people } = useQuery({
    queryKey: ['people', workspaceId],
    queryFn: () => allItems(api.listOperators, { params: { workspaceId }, query: { limit: 200 } }),
  })
  const assign = useAct(props)
  const mine = me?.email ?? me?.name
  // If no name is typed, Enter assigns the issue to this person: the most frequent case.
  const isToMe = name.trim() === '' && mine !== undefined && mine !== current
  const names = people?.flatMap((person) => [person.email, person.name].map((one) => one.toLowerCase()))
  const isStranger = names?.includes(name.trim().toLowerCase()) === false && ![current, mine, ''].includes(name.trim())
  return (
    <FormDialog
      title={`Assign${them(targets)}`}
      act={isToMe ? 'Assign to me' : 'Assign'}
      isReady={isToMe || name.trim() !== ''}
      isBusy={assign.isPending}
      error={assign.error}
      onSubmit={() => assign.mutate(isToMe ? mine : name.trim())}
      onClose={onClose}
    >
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        Name or e-mail
      </label>
      <input
        id={id}
        autoFocus
        list={`${id}-people`}
        autoComplete="off"
        maxLength={LIMITS.assigneeChars}
        value={name}
        onChange={(event) => setName(event.target.value)}
        className="field h-10 w-full text-base"
      />
      <datalist id={`${id}-people`}>
        {people?.map((person) => (
          <option key={person.id} value={person.email}>
            {person.name}
          </option>
        ))}
      </datalist>
      {isStranger && (
        <p role="status" className="mt-1 text-sm text-amber">
          ! No person in this workspace has this name or address. The issue will be assigned to it as typed.
        </p>
      )}
      <div className="mt-2 flex gap-2">
        {!isToMe && mine !== undefined && mine !== current && (
          <Button onClick={() => assign.mutate(mine)} busy={assign.isPending}>
            Assign to me
          </Button>
        )}
        {targets.some(({ assignee }) => assignee !== null) && (
          <Button onClick={() => assign.mutate(null)} busy={assign.isPending}>
            Remove the assignee
          </Button>
        )}
      </div>
    </FormDialog>
  )
}

const HOUR_MS = 3_600_000
const TIMES = [
  ['for a day', 24 * HOUR_MS],
  ['for a week', 7 * 24 * HOUR_MS],
  ['for 30 days', 30 * 24 * HOUR_MS],
  ['until someone reopens it', null],
] as const

/** Asks until when to ignore an issue; null: until someone reopens it. */
export function IgnoreDialog(props: DialogProps<string | null>) {
  const { targets, onClose } = props
  const [chosen, setChosen] = useState(1)
  const ignore = useAct(props)
  const until = () => {
    const ms = TIMES[chosen]?.[1] ?? null
    return ms === null ? null : new Date(Date.now() + ms).toISOString()
  }
  return (
    <FormDialog
      title={targets.length === 1 ? 'Ignore the issue' : `Ignore${them(targets)}`}
      act="Ignore"
      isBusy={ignore.isPending}
      error={ignore.error}
      onSubmit={() => ignore.mutate(until())}
      onClose={onClose}
    >
      <fieldset className="flex flex-col gap-2">
        <legend className="mb-2 text-sm text-soft">
          Detections are still counted. It opens again by itself afterwards.
        </legend>
        {TIMES.map(([word], index) => (
          <label key={word} className="flex items-center gap-2">
            <input
              type="radio"
              name="until"
              autoFocus={index === chosen}
              checked={index === chosen}
              onChange={() => setChosen(index)}
              className="accent-accent-fill"
            />
            {word}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}

const SHOWN = 100

/**
 * Asks for the issue to merge into: one of the selected ones, or for a single issue any other, which a search finds.
 */
export function MergeDialog(props: DialogProps<string> & { environmentId: string }) {
  const { environmentId, targets, onClose } = props
  const isOne = targets.length === 1
  const [most] = targets.toSorted((a, b) => b.affectedRuns - a.affectedRuns)
  const [into, setInto] = useState(isOne ? null : (most?.id ?? null))
  const [state, setState] = useState<IssueState>('OPEN')
  const [typed, setTyped] = useState('')
  const q = useDeferredValue(typed.trim())
  const { data } = useQuery({
    queryKey: ['issues', environmentId, 'to merge', state, q],
    queryFn: ({ signal }) =>
      api.listIssues({ params: { environmentId }, query: { state, limit: SHOWN, ...(q !== '' && { q }) } }, { signal }),
    placeholderData: keepPreviousData,
    enabled: isOne,
  })
  const merge = useAct(props)
  const others: readonly Target[] = isOne ? (data?.items.filter(({ id }) => id !== most?.id) ?? []) : targets
  return (
    <FormDialog
      title={isOne ? 'Merge into another issue' : `Merge${them(targets)} into one`}
      act="Merge"
      isReady={others.some(({ id }) => id === into)}
      isBusy={merge.isPending}
      error={merge.error}
      onSubmit={() => into !== null && merge.mutate(into)}
      onClose={onClose}
      className="w-full max-w-xl"
    >
      <p className="mb-3 text-sm text-soft">
        {isOne ? 'Its records' : 'The records of the others'}, present and future, then belong to{' '}
        {isOne ? 'the other' : 'this'} issue. A split undoes this.
      </p>
      {isOne && (
        <div className="flex flex-wrap gap-2">
          <input
            type="search"
            aria-label="Find an issue"
            placeholder="Title, tool, message or agent"
            autoFocus
            value={typed}
            maxLength={LIMITS.searchChars}
            onChange={(event) => setTyped(event.target.value)}
            className="field h-9 min-w-0 flex-1 text-base sm:text-sm"
          />
          <Choice
            label="State"
            value={state}
            options={ISSUE_STATES.map((one) => [one, stateWord(one)])}
            onChange={(chosen) => setState(chosen as IssueState)}
          />
        </div>
      )}
      {data && others.length === 0 && (
        <p className="mt-3 text-sm text-soft">No other issue in this state{q !== '' && ' matches'}.</p>
      )}
      <fieldset className="mt-2">
        <legend className="sr-only">Issue</legend>
        {others.map(({ id, title, affectedRuns }) => (
          <label key={id} className="flex items-center gap-2.5 border-b border-line py-2 text-sm last:border-0">
            <input
              type="radio"
              name="into"
              value={id}
              autoFocus={into === id}
              checked={into === id}
              onChange={() => setInto(id)}
              className="accent-accent-fill"
            />
            <bdi className="line-clamp-2 min-w-0 flex-1 wrap-anywhere" title={title}>
              {title}
            </bdi>
            <span className="tabular text-soft">{counted(affectedRuns, 'run')}</span>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}

interface SplitDialogProps {
  params: { environmentId: string; issueId: string }
  groups: readonly IssueGroup[]
  onClose: () => void
  onDone: (issueId: string) => Promise<void>
}

export function SplitDialog({ params, groups, onClose, onDone }: SplitDialogProps) {
  const [chosen, setChosen] = useState<readonly string[]>([])
  const split = useMutation({
    mutationFn: () => api.splitIssue({ params, body: { fingerprints: [...chosen] } }),
    onSuccess: ({ id }) => onDone(id),
  })
  return (
    <FormDialog
      title="Split facts off"
      act="Split off"
      isReady={chosen.length > 0 && chosen.length < groups.length}
      isBusy={split.isPending}
      error={split.error}
      onSubmit={() => split.mutate()}
      onClose={onClose}
    >
      <p className="mb-2 text-sm text-soft">
        The chosen facts, with their records, become an issue of their own. One set must stay.
      </p>
      <fieldset>
        <legend className="sr-only">Sets of facts</legend>
        {groups.map(({ fingerprint, facts, occurrences }) => (
          <label
            key={fingerprint}
            className="flex items-center gap-2.5 border-b border-line py-2 text-sm last:border-0"
          >
            <input
              type="checkbox"
              className="accent-accent-fill"
              checked={chosen.includes(fingerprint)}
              onChange={(event) =>
                setChosen(event.target.checked ? [...chosen, fingerprint] : chosen.filter((one) => one !== fingerprint))
              }
            />
            <bdi className="min-w-0 flex-1">{Object.values(facts).flat().join(' · ')}</bdi>
            <span className="tabular text-soft">{counted(occurrences, 'time')}</span>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
