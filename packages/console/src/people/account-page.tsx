import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Session } from '@tacho/contract/people/sign-in.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { api } from '../web/api.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Chip } from '../web/ui/chip.tsx'
import { State } from '../web/ui/state.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { Refused, Empty, PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Section, SectionPage } from '../web/ui/section.tsx'
import { Time } from '../web/text/times.tsx'
import { NotificationsPart } from '../messages/notifications.tsx'
import { programOf } from '../web/text/format.ts'
import { SecondFactorPart } from './second-factor.tsx'
import { OwnSlackUsers } from '../messages/slack-links.tsx'
import { Field } from '../web/ui/field.tsx'

export function AccountPage() {
  const { data: me, error, refetch } = useQuery(meQuery)
  if (isBlocking(error, me)) return <Trouble error={error} retry={() => void refetch()} />
  if (!me) return <PagePending />
  return (
    <SectionPage title="Your account" note={<bdi>{me.email ?? me.name}</bdi>}>
      <NotificationsPart />
      <Section title="Password" className="mt-8">
        <PasswordForm email={me.email ?? ''} />
      </Section>
      <Section title="Second factor" className="mt-8" note={<State is={me.twoFactor ? 'ON' : 'OFF'} />}>
        <SecondFactorPart isOn={me.twoFactor} />
      </Section>
      <OwnSlackUsers />
      <Section title="Sessions" className="mt-8">
        <Sessions />
      </Section>
    </SectionPage>
  )
}

const SESSIONS = ['sessions']

function Sessions() {
  const sessions = useQuery({
    queryKey: SESSIONS,
    queryFn: async () => (await api.listSessions()).items,
  })
  const end = useMutation({
    mutationFn: (sessionId: string) => api.endSession({ params: { sessionId } }),
  })
  const columns: Column<Session>[] = [
    {
      head: 'Program',
      main: true,
      cell: ({ userAgent, current }) => (
        <span className="flex items-center gap-2">
          <bdi className="min-w-0 truncate font-medium" title={userAgent ?? undefined}>
            {programOf(userAgent)}
          </bdi>
          {current && <Chip>this one</Chip>}
        </span>
      ),
    },
    { head: 'Address', wide: true, cell: ({ address }) => address ?? 'unknown' },
    { head: 'Started', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    { head: 'Last used', cell: ({ lastUsedAt, createdAt }) => <Time at={lastUsedAt ?? createdAt} /> },
    {
      head: 'Actions',
      right: true,
      cell: ({ id, current, userAgent }) =>
        !current && (
          <Button
            look="quiet"
            busy={end.isPending && end.variables === id}
            aria-label={`End the session of ${programOf(userAgent)}`}
            onClick={() => end.mutate(id)}
          >
            End
          </Button>
        ),
    },
  ]
  return (
    <>
      <Refused error={end.error} className="mb-2" />
      <ListedTable label="Sessions" columns={columns} list={sessions} empty={<Empty title="No session" />} />
    </>
  )
}

/** Changes the password, which ends all other sessions of the person. */
function PasswordForm({ email }: { email: string }) {
  const [password, setPassword] = useState('')
  const [newPassword, setNewPassword] = useState('')
  const change = useMutation({
    mutationFn: () => api.changePassword({ body: { password, newPassword } }),
    onSuccess: () => {
      setPassword('')
      setNewPassword('')
    },
  })
  return (
    <form
      className="grid max-w-xl items-start gap-4 sm:grid-cols-2"
      onSubmit={(event) => {
        event.preventDefault()
        change.mutate()
      }}
    >
      {/* Tells a password manager whose password it is. */}
      <input type="hidden" autoComplete="username" value={email} readOnly />
      <Field
        label="Present password"
        type="password"
        autoComplete="current-password"
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        required
      />
      <Field
        label="New password"
        type="password"
        autoComplete="new-password"
        minLength={LIMITS.passwordCharsMin}
        maxLength={LIMITS.passwordCharsMax}
        hint={`At least ${LIMITS.passwordCharsMin} characters`}
        value={newPassword}
        onChange={(event) => setNewPassword(event.target.value)}
        required
      />
      <div className="flex flex-wrap items-center gap-3 sm:col-span-2">
        <Button type="submit" busy={change.isPending}>
          Change password
        </Button>
        <p role="status" className="text-sm text-green empty:hidden">
          {change.isSuccess && '✓ Changed. Your other sessions have ended.'}
        </p>
        <Refused error={change.error} />
      </div>
    </form>
  )
}
