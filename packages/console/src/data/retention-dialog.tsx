import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RetentionPreview, RetentionRows, RetentionRuns, RetentionSettings } from '@tacho/contract/data/retention.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import { api } from '../web/api.ts'
import type { Place } from '../web/queries.ts'
import { RadioCards } from '../web/ui/radio-cards.tsx'
import { Field } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { bytes, counted } from '../web/text/format.ts'
import { Refused } from '../web/ui/refused.tsx'
import { Time } from '../web/text/time.tsx'
import { KEPT, type KeptName } from './kept.ts'
import { retentionPreviewQuery } from './queries.ts'

interface Props {
  place: Place
  settings: RetentionSettings
  onSettled: () => Promise<unknown>
  onClose: () => void
}

type Scope = 'environment' | 'workspace'

/** Shows what the new settings would remove before they are saved: it cannot be undone. */
export function RetentionDialog({ place, settings, onSettled, onClose }: Props) {
  const [scope, setScope] = useState<Scope>('environment')
  const [keeps, setKeeps] = useState(settings.keepOpenIssueRuns)
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(KEPT.map(([name]) => [name, settings[name]?.toString() ?? ''])) as Record<KeptName, string>,
  )
  const draft = useDeferredValue(settingsOf(texts, keeps))
  const preview = useQuery(retentionPreviewQuery(place.environment.id, draft))
  const save = useMutation<unknown>({
    mutationFn: () =>
      scope === 'environment'
        ? api.changeRetention({ params: { environmentId: place.environment.id }, body: draft })
        : api.changeWorkspaceRetention({ params: { workspaceId: place.workspace.id }, body: draft }),
    onSuccess: onClose,
    onSettled,
  })
  return (
    <FormDialog
      title="Keep for"
      act={preview.data && removes(preview.data) ? 'Save and remove' : 'Save'}
      isReady={preview.isSuccess && !preview.isFetching}
      isBusy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <p className="text-sm text-soft">Days. Empty: forever.</p>
        <div className="grid grid-cols-2 gap-4 sm:grid-cols-3">
          {KEPT.map(([name, label, hint]) => (
            <Field
              key={name}
              label={label}
              hint={hint}
              type="number"
              inputMode="numeric"
              min={name === 'auditDays' ? LIMITS.retentionAuditDaysMin : 1}
              max={LIMITS.retentionDays}
              step={1}
              placeholder="forever"
              autoFocus={name === 'runDays'}
              value={texts[name]}
              onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
            />
          ))}
        </div>
        <label className="flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            checked={keeps}
            onChange={(event) => setKeeps(event.target.checked)}
            className="accent-accent"
          />
          Keep the newest {LIMITS.keptRunsOfIssue} runs of each open issue
        </label>
        <RadioCards
          legend="For"
          value={scope}
          options={[
            { value: 'environment', name: place.environment.name, note: 'Only this environment.' },
            {
              value: 'workspace',
              name: `All of ${place.workspace.name}`,
              note: 'Every environment without settings of its own.',
            },
          ]}
          onChange={setScope}
        />
        <section aria-label="What would be removed" aria-live="polite" className="min-h-16 rounded-lg bg-side px-3 py-2 text-sm">
          {preview.error ? (
            <Refused error={preview.error} />
          ) : preview.isFetching || preview.data === undefined ? (
            <p className="text-soft">Counting what would be removed…</p>
          ) : (
            <Preview preview={preview.data} name={place.environment.name} />
          )}
        </section>
      </div>
    </FormDialog>
  )
}

function settingsOf(texts: Record<KeptName, string>, keepOpenIssueRuns: boolean): RetentionSettings {
  const days = Object.fromEntries(KEPT.map(([name]) => [name, texts[name] === '' ? null : Number(texts[name])]))
  return { ...(days as Record<KeptName, number | null>), keepOpenIssueRuns }
}

const removes = ({ runs, payloads, issues, approvals, auditEntries }: RetentionPreview): boolean =>
  runs.runs + payloads.runs + issues.count + approvals.count + auditEntries.count > 0

function Preview({ preview, name }: { preview: RetentionPreview | null; name: string }) {
  if (preview === null || !removes(preview)) return <p>Nothing in {name} would be removed now.</p>
  const { runs, payloads, issues, approvals, auditEntries } = preview
  return (
    <>
      <p className="font-medium">These would be removed from {name} now, forever:</p>
      <ul className="mt-1 list-inside list-disc">
        <Runs of={runs} what="with" />
        <Runs of={payloads} what="payloads of" />
        <Rows of={issues} noun="resolved or ignored issue" />
        <Rows of={approvals} noun="ended request" />
        <Rows of={auditEntries} noun="audit entry" plural="audit entries" />
      </ul>
    </>
  )
}

function Runs({ of: { exact, runs, events, bytes: size, oldest }, what }: { of: RetentionRuns; what: string }) {
  if (runs === 0) return null
  const about = exact ? '' : 'about '
  return (
    <li>
      {what === 'with' ? `${about}${counted(runs, 'run')} with ` : `the payloads of ${about}${counted(runs, 'run')}, `}
      {counted(events, 'event')}, about {bytes(size)}
      {oldest !== null && (
        <>
          , from <Time at={oldest} /> on
        </>
      )}
    </li>
  )
}

function Rows({ of: { exact, count }, noun, plural = `${noun}s` }: { of: RetentionRows; noun: string; plural?: string }) {
  if (count === 0) return null
  return (
    <li>
      {exact ? '' : 'at least '}
      {count === 1 ? `1 ${noun}` : `${count.toLocaleString('en-US')} ${plural}`}
    </li>
  )
}
