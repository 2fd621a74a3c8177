import type { CreatedInvitation, Invitation, Operator } from '@tacho/contract/people/operator.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Chip } from '../web/ui/chip.tsx'
import type { Column } from '../web/ui/data-table.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { Nothing, Section } from '../web/ui/section.tsx'
import { Empty, Forbidden } from '../web/ui/states.tsx'
import { Time } from '../web/text/time.tsx'
import { Confirm } from '../web/ui/confirm.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { ListedTable } from '../web/ui/listed.tsx'
import { peopleOf } from './people.ts'
import { RoleDialog } from './role-dialog.tsx'
import { roleWord } from './role-choice.tsx'
import { ScopeTabs } from './scope.tsx'
import { SectionPage } from '../web/ui/section-page.tsx'
import { ShownOnce } from '../web/ui/shown-once.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/people')

type Open =
  | { is: 'invite' }
  | { is: 'invited'; invitation: CreatedInvitation }
  | { is: 'role' | 'remove'; person: Operator }
  | { is: 'revoke'; invitation: Invitation }

export function PeoplePage() {
  const { place } = route.useRouteContext()
  const { scope = 'workspace' } = route.useSearch()
  const navigate = useNavigate()
  const cache = useQueryClient()
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const { data: me } = useQuery(meQuery)
  const isEverywhere = scope === 'everywhere'
  const canChange = isEverywhere ? me?.installation === true : place.may('owner')
  const calls = peopleOf(isEverywhere ? null : place.workspace.id)
  const people = useQuery({ queryKey: [...calls.key, 'people'], queryFn: calls.people })
  const invitations = useQuery({
    queryKey: [...calls.key, 'invitations'],
    queryFn: calls.invitations,
    enabled: canChange,
  })
  const renew = () => cache.invalidateQueries({ queryKey: calls.key })
  useKeys(canChange ? { n: () => setOpen({ is: 'invite' }) } : {})
  const where = isEverywhere ? 'every workspace' : place.workspace.name

  const columns: Column<Operator>[] = [
    { head: 'Person', main: true, cell: (person) => <Person person={person} isMe={person.id === me?.id} /> },
    {
      head: 'Role',
      cell: ({ role, fromGroups }) =>
        role ? (
          <>
            {roleWord(role)}
            {fromGroups && <span className="text-soft"> by group</span>}
          </>
        ) : (
          <span className="text-soft">none</span>
        ),
    },
    { head: 'Second factor', wide: true, cell: ({ twoFactor }) => (twoFactor ? <Chip tone="green">On</Chip> : 'off') },
    { head: 'Last sign-in', wide: true, cell: ({ lastSignInAt: at }) => (at ? <Time at={at} /> : 'not lately') },
  ]
  if (canChange) {
    columns.push({
      head: 'Actions',
      right: true,
      cell: (person) => (
        <>
          <Button look="quiet" aria-label={`Role of ${person.email}`} onClick={() => setOpen({ is: 'role', person })}>
            Role
          </Button>
          <Button look="quiet" aria-label={`Remove ${person.email}`} onClick={() => setOpen({ is: 'remove', person })}>
            Remove
          </Button>
        </>
      ),
    })
  }
  const invited: Column<Invitation>[] = [
    { head: 'E-mail', main: true, cell: ({ email }) => <bdi className="block truncate font-medium">{email}</bdi> },
    { head: 'Role', cell: ({ role }) => roleWord(role) },
    { head: 'Invited by', wide: true, cell: ({ invitedBy }) => <bdi>{invitedBy}</bdi> },
    { head: 'Link expires', wide: true, cell: ({ expiresAt }) => <Time at={expiresAt} /> },
    {
      head: 'Actions',
      right: true,
      cell: (invitation) => (
        <Button
          look="quiet"
          aria-label={`Revoke the invitation of ${invitation.email}`}
          onClick={() => setOpen({ is: 'revoke', invitation })}
        >
          Revoke
        </Button>
      ),
    },
  ]
  if (isEverywhere && me && !me.installation)
    return <Forbidden>Only an owner of the installation sees the accounts of every workspace.</Forbidden>
  return (
    <SectionPage
      title="People"
      note={`Who may do what in ${where}. A changed role takes effect within 5 seconds.`}
      act={
        canChange && (
          <Button look="accent" onClick={() => setOpen({ is: 'invite' })}>
            Invite a person
          </Button>
        )
      }
    >
      <ScopeTabs
        workspace={place.workspace.name}
        scope={scope}
        onChange={(next) => void navigate({ to: '.', search: next === 'everywhere' ? { scope: next } : {} })}
      />
      <ListedTable
        label="People"
        columns={columns}
        list={people}
        empty={
          <Empty title={`No roles in ${where} alone`}>
            People with a role in every workspace work here too. Only owners of the installation see who they are.
          </Empty>
        }
      />
      {canChange && (
        <Section title="Invitations">
          <ListedTable
            label="Invitations"
            columns={invited}
            list={invitations}
            empty={<Nothing>No invitation waits. A link works once, within a week.</Nothing>}
          />
        </Section>
      )}
      {open?.is === 'invite' && (
        <InviteDialog
          where={where}
          invite={calls.invite}
          onClose={close}
          onInvited={(invitation) => {
            setOpen({ is: 'invited', invitation })
            void renew()
          }}
        />
      )}
      {open?.is === 'invited' && (
        <ShownOnce
          title="The invitation"
          note={`Give this link only to ${open.invitation.email}. It works once, within a week; Tacho sends no mail.`}
          label="Invitation link"
          text={open.invitation.link}
          onClose={close}
        />
      )}
      {open?.is === 'role' && (
        <RoleDialog
          person={open.person}
          mayBeNone={isEverywhere}
          change={calls.changeRole}
          onSettled={renew}
          onClose={close}
        />
      )}
      {open?.is === 'remove' && (
        <Confirm
          title={isEverywhere ? `Delete the account of ${open.person.email}?` : `Remove ${open.person.email}?`}
          act={isEverywhere ? 'Delete' : 'Remove'}
          run={() => calls.remove(open.person.id)}
          onSettled={renew}
          onClose={close}
        >
          {isEverywhere
            ? 'The account ends with its roles, password, second factor and sessions. What the person did stays in the audit log.'
            : `The person loses the role in ${where} within 5 seconds. What the person did stays in the audit log.`}
        </Confirm>
      )}
      {open?.is === 'revoke' && (
        <Confirm
          title={`Revoke the invitation of ${open.invitation.email}?`}
          act="Revoke"
          run={() => calls.revoke(open.invitation.id)}
          onSettled={renew}
          onClose={close}
        >
          The link stops working.
        </Confirm>
      )}
    </SectionPage>
  )
}

function Person({ person: { name, email, deactivated }, isMe }: { person: Operator; isMe: boolean }) {
  return (
    <>
      <span className="flex items-center gap-2">
        <bdi className="min-w-0 truncate font-medium">{name}</bdi>
        {isMe && <Chip>you</Chip>}
        {deactivated && <Chip tone="amber">deactivated</Chip>}
      </span>
      {email !== name && (
        <bdi className="block truncate text-soft" title={email}>
          {email}
        </bdi>
      )}
    </>
  )
}
