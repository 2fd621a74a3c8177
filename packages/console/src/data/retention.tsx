/** How long an environment keeps its data. */
import { useQuery, useMutation } from '@tanstack/react-query'
import { useState, useDeferredValue } from 'react'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  Retention as RetentionRead,
  RetentionCounts,
  RetentionPreview,
  RetentionRows,
  RetentionRuns,
  RetentionSettings,
} from '@tacho/contract/data/retention.ts'
import { api } from '../web/api.ts'
import type { Place } from '../web/queries.ts'
import { Confirm, FormDialog } from '../web/ui/form-dialog.tsx'
import { Button } from '../web/ui/button.tsx'
import { Fact, Facts, Section } from '../web/ui/section.tsx'
import { counted, bytes } from '../web/text/format.ts'
import { Skeleton, Trouble, isBlocking, Refused } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { retentionQuery, retentionPreviewQuery } from './queries.ts'
import { RadioCards, Field } from '../web/ui/field.tsx'

/** The retention periods of an environment, and what was removed. */
export function Retention({ place }: { place: Place }) {
  const environmentId = place.environment.id
  const { data, error, refetch } = useQuery(retentionQuery(environmentId))
  const [open, setOpen] = useState<'change' | 'inherit' | null>(null)
  const close = () => setOpen(null)
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Skeleton className="h-40" />
  return (
    <Section title="Kept for" className="" note={sourceText(data, place)}>
      {data.damaged && (
        <p className="text-sm text-red">! The stored settings are damaged, and nothing is removed. Set them again.</p>
      )}
      <Facts>
        {KEPT.map(([name, word]) => (
          <Fact key={name} name={word}>
            {daysText(data.settings[name])}
          </Fact>
        ))}
        <Fact name="Runs with an open issue">
          {data.settings.keepOpenIssueRuns
            ? `the newest ${LIMITS.keptRunsOfIssue} of each issue kept whole`
            : 'removed like other runs'}
        </Fact>
        <Fact name="Pinned runs">kept forever</Fact>
      </Facts>
      <Progress read={data} />
      {place.may('admin') && (
        <div className="mt-3 flex flex-wrap gap-2">
          <Button onClick={() => setOpen('change')}>Change…</Button>
          {data.source === 'environment' && (
            <Button look="quiet" onClick={() => setOpen('inherit')}>
              Follow the workspace again…
            </Button>
          )}
        </div>
      )}
      {open === 'change' && <RetentionDialog place={place} settings={data.settings} onClose={close} />}
      {open === 'inherit' && (
        <Confirm
          title="Follow the workspace again?"
          act="Follow the workspace"
          run={() => api.inheritRetention({ params: { environmentId } })}
          onClose={close}
        >
          The settings of {place.environment.name} are dropped, and those of {place.workspace.name} count. If they keep
          things for a shorter time, older things are removed in the background. This cannot be undone.
        </Confirm>
      )}
    </Section>
  )
}

function sourceText({ source }: RetentionRead, place: Place): string {
  if (source === 'none') return 'Nothing is set'
  return `Set for ${source === 'environment' ? place.environment.name : `all of ${place.workspace.name}`}`
}

const daysText = (days: number | null): string => (days === null ? 'forever' : counted(days, 'day'))

function Progress({ read: { source, progress } }: { read: RetentionRead }) {
  if (source === 'none' || progress === null) return null
  const { passStartedAt, passEndedAt, pass, total } = progress
  return (
    <p className="mt-3 text-sm text-soft">
      {passEndedAt === null ? (
        <>
          Older things are being removed since <Time at={passStartedAt} />: {removedText(pass)}.
        </>
      ) : (
        <>
          Last looked <Time at={passEndedAt} />: {removedText(pass)}.
        </>
      )}{' '}
      In all: {removedText(total)}.
    </p>
  )
}

function removedText({ runs, payloads, issues, approvals, auditEntries }: RetentionCounts): string {
  const parts = [
    runs > 0 && counted(runs, 'run'),
    payloads > 0 && counted(payloads, 'payload'),
    issues > 0 && counted(issues, 'issue'),
    approvals > 0 && counted(approvals, 'request'),
    auditEntries > 0 && `${counted(auditEntries, 'line')} of the audit log`,
  ].filter((noticePart) => noticePart !== false)
  return parts.length === 0 ? 'nothing removed' : `${parts.join(', ')} removed`
}

interface Props {
  place: Place
  settings: RetentionSettings
  onClose: () => void
}

type Scope = 'environment' | 'workspace'

/** Shows what the new settings would remove before they are saved, because removal cannot be undone. */
function RetentionDialog({ place, settings, onClose }: Props) {
  const [scope, setScope] = useState<Scope>('environment')
  const [keeps, setKeeps] = useState(settings.keepOpenIssueRuns)
  const [texts, setTexts] = useState(
    () =>
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
        <section
          aria-label="What would be removed"
          aria-live="polite"
          className="min-h-16 rounded-lg bg-side px-3 py-2 text-sm"
        >
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

function Rows({
  of: { exact, count },
  noun,
  plural = `${noun}s`,
}: {
  of: RetentionRows
  noun: string
  plural?: string
}) {
  if (count === 0) return null
  return (
    <li>
      {exact ? '' : 'at least '}
      {count === 1 ? `1 ${noun}` : `${count.toLocaleString('en-US')} ${plural}`}
    </li>
  )
}

/** Kinds of data that retention keeps for a number of days. */
const KEPT = [
  ['runDays', 'Runs', 'after their last event'],
  ['payloadDays', 'Payloads', 'the timeline stays'],
  ['issueDays', 'Resolved issues', 'and ignored ones'],
  ['approvalDays', 'Ended requests', 'for approval'],
  ['auditDays', 'Audit log', 'at least 30'],
] as const
type KeptName = (typeof KEPT)[number][0]
