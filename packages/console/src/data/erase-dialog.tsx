/** Erases a run, session, agent, client or user forever. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ErasureKind, ErasureSubject } from '@tacho/contract/data/erasure.ts'
import { stillRunning } from '@tacho/contract/runs/run-text.ts'
import { ERASURE_KINDS } from '@tacho/contract/engine/words.ts'
import { api } from '../web/api.ts'
import type { Place } from '../web/queries.ts'
import { Field, SelectField } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { counted } from '../web/text/format.ts'
import { Refused } from '../web/ui/states.tsx'
import { FieldSuggestions } from './field-suggestions.tsx'
import { erasurePreviewQuery } from './queries.ts'
import { MenuItem, Popover } from '../web/ui/overlay.tsx'

interface EraseDialogProps {
  place: Place
  /** The subject to erase; null: the person enters it. */
  subject: Pick<ErasureSubject, 'kind' | 'id'> | null
  onClose: () => void
}

/** Shows what will be erased before it is, and then links to the receipt. */
export function EraseDialog({ place, subject, onClose }: EraseDialogProps) {
  const environmentId = place.environment.id
  const navigate = useNavigate()
  const cache = useQueryClient()
  const [kind, setKind] = useState<ErasureKind>(subject?.kind ?? 'user')
  const [id, setId] = useState(subject?.id ?? '')
  const [field, setField] = useState('')
  const [reason, setReason] = useState('')
  const keys = kind === 'user' && field !== '' ? { field: field.split('.') } : {}
  const chosen: ErasureSubject = { kind, id, ...keys }
  const preview = useQuery({ ...erasurePreviewQuery(environmentId, chosen), enabled: id !== '' })
  const isNothing = preview.data !== undefined && preview.data.runs === 0 && preview.data.toSearch === 0
  // The confirmation is valid for this subject only.
  const [confirmed, setConfirmed] = useState('')
  const subjectText = JSON.stringify(chosen)
  const erase = useMutation({
    mutationFn: () =>
      api.createErasure({ params: { environmentId }, body: { ...chosen, ...(reason !== '' && { reason }) } }),
    onSuccess: async () => {
      onClose()
      await navigate({
        to: '/w/$workspace/$environment/settings/data',
        params: { workspace: place.workspace.name, environment: place.environment.name },
      })
      // Erased data must disappear from the page.
      await cache.resetQueries({ predicate: ({ queryKey }) => queryKey.includes(environmentId) })
    },
  })
  return (
    <FormDialog
      title={subject === null ? 'Erase forever' : `Erase this ${kind}?`}
      act="Erase forever"
      isDanger
      isReady={id !== '' && preview.isSuccess && !preview.isFetching && (!isNothing || confirmed === subjectText)}
      isBusy={erase.isPending}
      error={erase.error}
      onSubmit={() => erase.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        {subject === null ? (
          <>
            <SelectField
              label="What"
              value={kind}
              options={ERASURE_KINDS.map((one) => [one, KIND_WORDS[one]])}
              onChange={(to) => setKind(to as ErasureKind)}
            />
            <Field
              label="Id"
              hint={kind === 'agent' ? 'An agent without an id is named by its name' : 'As clients send it'}
              value={id}
              onChange={(event) => setId(event.target.value)}
              maxLength={LIMITS.textChars}
              autoComplete="off"
              autoFocus
              required
            />
            {kind === 'user' && (
              <div>
                <Field
                  label="Payload field"
                  hint="Such as customer.id. Empty: only the runs for this end user, and the session with this id"
                  value={field}
                  onChange={(event) => setField(event.target.value)}
                  autoComplete="off"
                />
                <FieldSuggestions environmentId={environmentId} id={id} field={field} onChoose={setField} />
              </div>
            )}
          </>
        ) : (
          <p className="truncate font-mono text-sm" title={id}>
            <bdi>{id}</bdi>
          </p>
        )}
        <section aria-label="What goes" aria-live="polite" className="rounded-lg bg-side px-3 py-2 text-sm">
          {id === '' ? (
            <p className="text-soft">This erases {KIND_NOTES[kind]}.</p>
          ) : preview.error ? (
            <Refused error={preview.error} />
          ) : preview.data === undefined || preview.isFetching ? (
            <p className="text-soft">Counting what goes…</p>
          ) : isNothing ? (
            <>
              <p className="font-medium text-amber">
                ! No run matches. Check the spelling: the id must be exactly as clients send it.
              </p>
              <label className="mt-2 flex items-start gap-2.5">
                <input
                  type="checkbox"
                  checked={confirmed === subjectText}
                  onChange={({ target }) => setConfirmed(target.checked ? subjectText : '')}
                  className="mt-0.5 size-4 accent-accent-fill"
                />
                <span>Erase it all the same: also what came without a run, and what still arrives late.</span>
              </label>
            </>
          ) : (
            <>
              <p>
                This erases {KIND_NOTES[kind]}:{' '}
                <b>
                  {preview.data.more || preview.data.toSearch > 0 ? 'at least ' : ''}
                  {counted(preview.data.runs, 'run')} with {counted(preview.data.events, 'event')}
                </b>
                , their approvals, issue records and usage.
              </p>
              {preview.data.toSearch > 0 && (
                <p className="mt-1 text-amber">
                  {counted(preview.data.toSearch, 'run')} must be searched in addition, and those with the id in this
                  field go too. How many, and when, the receipt says.
                </p>
              )}
              {preview.data.runningRuns > 0 && (
                <p className="mt-1 text-amber">{stillRunning(preview.data.runningRuns, kind)}</p>
              )}
              <p className="mt-1 font-medium text-red">
                This cannot be undone. Backups keep it until they are deleted.
              </p>
            </>
          )}
        </section>
        <Field
          label="Reason"
          hint="For the receipt, such as a ticket number. Never the erased id itself"
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          maxLength={LIMITS.erasureReasonChars}
          autoComplete="off"
        />
      </div>
    </FormDialog>
  )
}

interface EraseMenuProps {
  place: Place
  subject: Pick<ErasureSubject, 'kind' | 'id'>
  className?: string
  /** Other acts on the subject, also for people who are not admins. */
  children?: ReactNode
}

export function EraseMenu({ place, subject, className = '', children }: EraseMenuProps) {
  const [isErasing, setErasing] = useState(false)
  const mayErase = place.may('admin')
  if (!mayErase && !children) return null
  return (
    <>
      <Popover label="More" className={className} panelClassName="w-56 p-1">
        {children}
        {mayErase && <MenuItem onClick={() => setErasing(true)}>Erase this {subject.kind}…</MenuItem>}
      </Popover>
      {isErasing && <EraseDialog place={place} subject={subject} onClose={() => setErasing(false)} />}
    </>
  )
}

export const KIND_WORDS: Record<ErasureKind, string> = {
  run: 'Run',
  session: 'Session',
  agent: 'Agent',
  client: 'Client',
  user: 'User',
}

/** Descriptions of the erased data, after “This erases”. */
const KIND_NOTES: Record<ErasureKind, string> = {
  run: 'this run',
  session: 'every run of this session',
  agent: 'every run of this agent',
  client: 'every run with an event that this client sent',
  user: 'every run for this end user and of the session with this id, and with a field, every run whose payloads have the id there',
}
