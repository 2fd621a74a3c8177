import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Choice } from '../web/ui/filters.tsx'
import { counted } from '../web/text/format.ts'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { ISSUE_STATES } from '@tacho/contract/engine/words.ts'
import type { IssueState } from '@tacho/contract/issues/issue.ts'
import { stateWord } from './issue-state.tsx'

interface MergeDialogProps {
  params: { environmentId: string; issueId: string }
  onClose: () => void
  onDone: (issueId: string) => Promise<void>
}

const SHOWN = 100

export function MergeDialog({ params, onClose, onDone }: MergeDialogProps) {
  const { environmentId, issueId } = params
  const [into, setInto] = useState<string | null>(null)
  const [state, setState] = useState<IssueState>('OPEN')
  const { data } = useQuery({
    queryKey: ['issues', environmentId, 'to merge', state],
    queryFn: () => api.listIssues({ params: { environmentId }, query: { state, limit: SHOWN } }),
    placeholderData: keepPreviousData,
  })
  const merge = useMutation({
    mutationFn: (target: string) => api.mergeIssue({ params, body: { into: target } }),
    onSuccess: ({ id }) => onDone(id),
  })
  const others = data?.items.filter(({ id }) => id !== issueId) ?? []
  return (
    <FormDialog
      title="Merge into another issue"
      act="Merge"
      isReady={into !== null}
      isBusy={merge.isPending}
      error={merge.error}
      onSubmit={() => into !== null && merge.mutate(into)}
      onClose={onClose}
      className="w-full max-w-xl"
    >
      <p className="mb-3 text-sm text-soft">
        Its records, present and future, then belong to the other issue. A split undoes this.
      </p>
      <Choice
        label="State"
        value={state}
        options={ISSUE_STATES.map((one) => [one, stateWord(one)])}
        onChange={(chosen) => setState(chosen as IssueState)}
      />
      {data && others.length === 0 && <p className="mt-3 text-sm text-soft">There is no other issue in this state.</p>}
      <fieldset className="mt-2">
        <legend className="sr-only">Issue</legend>
        {others.map(({ id, title, occurrences }) => (
          <label key={id} className="flex items-center gap-2.5 border-b border-line py-2 text-sm last:border-0">
            <input
              type="radio"
              name="into"
              value={id}
              checked={into === id}
              onChange={() => setInto(id)}
              className="accent-accent-fill"
            />
            <bdi className="min-w-0 flex-1 truncate" title={title}>
              {title}
            </bdi>
            <span className="tabular text-soft">{counted(occurrences, 'time')}</span>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
