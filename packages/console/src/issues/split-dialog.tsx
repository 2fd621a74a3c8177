import type { IssueGroup } from '@tacho/contract/issues/issue.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { counted } from '../web/text/format.ts'
import { FormDialog } from '../web/ui/form-dialog.tsx'

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
