import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { FormDialog } from '../web/ui/form-dialog.tsx'

const HOUR_MS = 3_600_000
const TIMES = [
  ['for a day', 24 * HOUR_MS],
  ['for a week', 7 * 24 * HOUR_MS],
  ['for 30 days', 30 * 24 * HOUR_MS],
  ['until someone reopens it', null],
] as const

interface IgnoreDialogProps {
  params: { environmentId: string; issueId: string }
  onClose: () => void
  onDone: () => Promise<unknown>
}

export function IgnoreDialog({ params, onClose, onDone }: IgnoreDialogProps) {
  const [chosen, setChosen] = useState(1)
  const ignore = useMutation({
    mutationFn: () => {
      const ms = TIMES[chosen]?.[1] ?? null
      return api.ignoreIssue({ params, query: ms === null ? {} : { until: new Date(Date.now() + ms).toISOString() } })
    },
    onSuccess: async () => {
      onClose()
      await onDone()
    },
  })
  return (
    <FormDialog
      title="Ignore the issue"
      act="Ignore"
      isBusy={ignore.isPending}
      error={ignore.error}
      onSubmit={() => ignore.mutate()}
      onClose={onClose}
    >
      <fieldset className="flex flex-col gap-2">
        <legend className="mb-2 text-sm text-soft">
          Detections are still counted. It opens again by itself afterwards.
        </legend>
        {TIMES.map(([word], index) => (
          <label key={word} className="flex items-center gap-2">
            <input type="radio" name="until" checked={index === chosen} onChange={() => setChosen(index)} />
            {word}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
