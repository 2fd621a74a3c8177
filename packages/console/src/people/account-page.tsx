import type { Session } from '@tacho/contract/people/sign-in.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Chip } from '../web/ui/chip.tsx'
import type { Column } from '../web/ui/data-table.tsx'
import { Refused } from '../web/ui/refused.tsx'
import { Section } from '../web/ui/section.tsx'
import { Empty, PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Time } from '../web/text/time.tsx'
import { ListedTable } from '../web/ui/listed.tsx'
import { NotificationsPart } from '../messages/notifications.tsx'
import { PasswordForm } from './password-form.tsx'
import { programOf } from '../web/text/program.ts'
import { SecondFactorPart } from './second-factor.tsx'
import { SectionPage } from '../web/ui/section-page.tsx'
import { OwnSlackUsers } from '../messages/slack-links.tsx'

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
      <Section title="Second factor" className="mt-8" note={me.twoFactor ? <Chip tone="green">On</Chip> : 'off'}>
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
  const cache = useQueryClient()
  const sessions = useQuery({
    queryKey: SESSIONS,
    queryFn: async () => (await api.listSessions()).items,
  })
  const end = useMutation({
    mutationFn: (sessionId: string) => api.endSession({ params: { sessionId } }),
    onSettled: () => cache.invalidateQueries({ queryKey: SESSIONS }),
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
