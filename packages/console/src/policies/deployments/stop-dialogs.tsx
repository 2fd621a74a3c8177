/** Dialogs that stop an agent, session, run or environment, show which clients have confirmed it, and end a stop. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { STOP_SCOPES } from '@tacho/contract/engine/words.ts'
import type { Stop, StopScope } from '@tacho/contract/policies/stop.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { counted, number } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Field, SelectField } from '../../web/ui/field.tsx'
import { FormDialog } from '../../web/ui/form-dialog.tsx'
import { Dialog } from '../../web/ui/overlay.tsx'
import { stopName, stopsKey, stopsQuery } from './queries.ts'

/** The id or name of an agent, or the id of a session or run; empty for the environment. */
export type StopSubject = Pick<Stop, 'scope' | 'target'>

interface StopDialogProps {
  environmentId: string
  /** The subject to stop; null: the person enters it. */
  subject: StopSubject | null
  onClose: () => void
}

export function StopDialog({ environmentId, subject, onClose }: StopDialogProps) {
  const [scope, setScope] = useState<StopScope>(subject?.scope ?? 'agent')
  const [target, setTarget] = useState(subject?.target ?? '')
  const [reason, setReason] = useState('')
  const stop = useMutation({
    mutationFn: () =>
      api.stop({ params: { environmentId }, body: { scope, reason, ...(scope !== 'environment' && { target }) } }),
  })
  if (stop.data) {
    const { isNew, isKnown, rejected, stoppedBy } = stop.data
    return (
      <Dialog title="Stopped" onClose={onClose}>
        <div className="flex flex-col gap-2 p-5 text-sm">
          <h2 className="text-lg font-semibold [overflow-wrap:anywhere]">
            <ShownText text={stopName(stop.data)} /> is stopped
          </h2>
          {!isNew && (
            <p>
              It was stopped already, by <ShownText text={stoppedBy} />: <ShownText text={stop.data.reason} />. That
              stop stays in effect.
            </p>
          )}
          {!isKnown && (
            <p className="text-amber">! This environment has recorded no such {scope}: check the spelling.</p>
          )}
          {rejected > 0 && <p>Rejected: {counted(rejected, 'waiting approval')}.</p>}
          <Confirmed environmentId={environmentId} />
          <div className="flex justify-end pt-2">
            <Button look="accent" onClick={onClose}>
              Close
            </Button>
          </div>
        </div>
      </Dialog>
    )
  }
  return (
    <FormDialog
      title={subject === null ? 'Stop' : `Stop ${THESE[subject.scope]}?`}
      act="Stop"
      isReady={reason.trim() !== '' && (scope === 'environment' || target !== '')}
      isBusy={stop.isPending}
      error={stop.error}
      onSubmit={() => stop.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        {subject === null ? (
          <>
            <SelectField
              label="What"
              value={scope}
              options={STOP_SCOPES.map((one) => [one, WORDS[one]])}
              onChange={(to) => setScope(STOP_SCOPES.find((one) => one === to) ?? 'agent')}
            />
            {scope !== 'environment' && (
              <Field
                label={scope === 'agent' ? 'Id or name' : 'Id'}
                hint="As clients send it"
                value={target}
                onChange={(event) => setTarget(event.target.value)}
                maxLength={LIMITS.textChars}
                autoComplete="off"
                required
              />
            )}
          </>
        ) : (
          subject.target !== '' && (
            <p className="font-mono text-sm [overflow-wrap:anywhere]">
              <ShownText text={subject.target} />
            </p>
          )
        )}
        <div className="rounded-lg bg-side px-3 py-2 text-sm">
          <p>
            Every guarded call of {THESE[scope]} is blocked, until somebody resumes it. Calls that wait for approval are
            rejected.
          </p>
          <p className="mt-1 text-soft">
            A call that already runs goes on, and a program that only records is not stopped.
          </p>
        </div>
        <Field
          label="Reason"
          hint="Each blocked call says it, after your name"
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          maxLength={LIMITS.stopReasonChars}
          autoComplete="off"
          autoFocus
          required
        />
      </div>
    </FormDialog>
  )
}

const WORDS: Record<StopScope, string> = {
  environment: 'The whole environment',
  agent: 'Agent',
  session: 'Session',
  run: 'Run',
}

const THESE: Record<StopScope, string> = {
  environment: 'this environment',
  agent: 'this agent',
  session: 'this session',
  run: 'this run',
}

const NAMED = 10

/** How many clients have the configuration with the stops, and which do not. */
export function Confirmed({ environmentId }: { environmentId: string }) {
  const { data } = useQuery(stopsQuery(environmentId))
  const { confirmed = 0, unconfirmed = 0, silent = 0 } = data?.clients ?? {}
  const late = useQuery({
    queryKey: [...stopsKey(environmentId), 'unconfirmed', confirmed, unconfirmed],
    queryFn: async ({ signal }) => {
      const pages = (['BEHIND', 'UPDATING'] as const).map((standing) =>
        api.listConfigurationClients({ params: { environmentId }, query: { standing, limit: NAMED } }, { signal }),
      )
      return (await Promise.all(pages)).flatMap(({ items }) => items).slice(0, NAMED)
    },
    enabled: unconfirmed > 0,
  })
  if (!data) return null
  const asking = confirmed + unconfirmed
  if (asking === 0) return <p className="text-soft">No client asks for the configuration of this environment.</p>
  const names = unconfirmed > 0 ? (late.data ?? []) : []
  return (
    <div role="status">
      <p>
        Confirmed by {number(confirmed)} of {counted(asking, 'client')}.
        {silent > 0 && <span className="text-soft"> {counted(silent, 'client')} stopped asking before.</span>}
      </p>
      {names.length > 0 && (
        <p className="text-amber [overflow-wrap:anywhere]">
          Not confirmed: {names.map(({ clientId }) => clientId).join(', ')}
          {unconfirmed > names.length && ` and ${number(unconfirmed - names.length)} more`}
        </p>
      )}
    </div>
  )
}

interface ResumeDialogProps {
  environmentId: string
  stop: Stop
  onClose: () => void
}

export function ResumeDialog({ environmentId, stop, onClose }: ResumeDialogProps) {
  const [reason, setReason] = useState('')
  const resume = useMutation({
    mutationFn: () =>
      api.resume({ params: { environmentId, stopId: stop.id }, body: reason.trim() === '' ? {} : { reason } }),
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title={`Resume ${THESE[stop.scope]}?`}
      act="Resume"
      isBusy={resume.isPending}
      error={resume.error}
      onSubmit={() => resume.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        {stop.target !== '' && (
          <p className="font-mono text-sm [overflow-wrap:anywhere]">
            <ShownText text={stop.target} />
          </p>
        )}
        <p className="text-sm">
          Guarded calls run again, unless another stop or a policy blocks them. Rejected calls stay rejected: the agent
          asks again.
        </p>
        <Field
          label="Why it may go on"
          hint="Stored with the stop. Optional"
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          maxLength={LIMITS.stopReasonChars}
          autoComplete="off"
          autoFocus
        />
      </div>
    </FormDialog>
  )
}
