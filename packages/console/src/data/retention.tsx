import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Retention as RetentionRead, RetentionCounts } from '@tacho/contract/data/retention.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import type { Place } from '../web/queries.ts'
import { Confirm } from '../web/ui/confirm.tsx'
import { Button } from '../web/ui/button.tsx'
import { Fact, Facts } from '../web/ui/facts.tsx'
import { counted } from '../web/text/format.ts'
import { Section } from '../web/ui/section.tsx'
import { Skeleton, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Time } from '../web/text/time.tsx'
import { KEPT } from './kept.ts'
import { retentionQuery } from './queries.ts'
import { RetentionDialog } from './retention-dialog.tsx'

/** How long things are kept, and what was removed. */
export function Retention({ place }: { place: Place }) {
  const environmentId = place.environment.id
  const { data, error, refetch } = useQuery(retentionQuery(environmentId))
  const cache = useQueryClient()
  const [open, setOpen] = useState<'change' | 'inherit' | null>(null)
  const close = () => setOpen(null)
  const renew = () => cache.invalidateQueries({ queryKey: retentionQuery(environmentId).queryKey })
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Skeleton className="h-40" />
  return (
    <Section title="Kept for" className="" note={sourceText(data, place)}>
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
      {open === 'change' && (
        <RetentionDialog place={place} settings={data.settings} onSettled={renew} onClose={close} />
      )}
      {open === 'inherit' && (
        <Confirm
          title="Follow the workspace again?"
          act="Follow the workspace"
          run={() => api.inheritRetention({ params: { environmentId } })}
          onSettled={renew}
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
  ].filter((part) => part !== false)
  return parts.length === 0 ? 'nothing removed' : `${parts.join(', ')} removed`
}
