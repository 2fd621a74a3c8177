import { useQuery, useMutation } from '@tanstack/react-query'
import { getRouteApi, useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import type { CreatedInvitation, Invitation, Operator, NewInvitation } from '@tacho/contract/people/operator.ts'
import { allItems } from '@tacho/client/items.ts'
import { localLinkWarning } from '@tacho/contract/people/local-link.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Chip } from '../web/ui/chip.tsx'
import { DamagedChip, State } from '../web/ui/state.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { Nothing, Section, SectionPage } from '../web/ui/section.tsx'
import { Empty, Forbidden } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { Confirm, ShownOnce, FormDialog } from '../web/ui/form-dialog.tsx'
import { roleWord, RoleChoice, ScopeTabs } from './role-choice.tsx'
import { api } from '../web/api.ts'
import { Field } from '../web/ui/field.tsx'

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
  // With this hash, the palette opens the dialog.
  const { hash } = useLocation()
  useEffect(() => {
    if (hash !== 'new' || !canChange) return
    setOpen({ is: 'invite' })
    void navigate({ to: '.', search: true, hash: '', replace: true })
  }, [hash, canChange, navigate])
  useKeys(canChange ? { n: () => setOpen({ is: 'invite' }) } : {})
  const where = isEverywhere ? 'every workspace' : place.workspace.name

  const columns: Column<Operator>[] = [
    { head: 'Person', main: true, cell: (person) => <Person person={person} isMe={person.id === me?.id} /> },
    {
      head: 'Role',
      cell: ({ role, fromGroups, damaged }) =>
        damaged ? (
          <DamagedChip note="It changed on the disk and allows nothing. Give the role again." />
        ) : role ? (
          <>
            {roleWord(role)}
            {fromGroups && <span className="text-soft"> by group</span>}
          </>
        ) : (
          <span className="text-soft">none</span>
        ),
    },
    { head: 'Second factor', wide: true, cell: ({ twoFactor }) => <State is={twoFactor ? 'ON' : 'OFF'} /> },
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
          }}
        />
      )}
      {open?.is === 'invited' && (
        <ShownOnce
          title="The invitation"
          note={`Give this link only to ${open.invitation.email}. It works once, within a week; Tacho sends no mail.`}
          label="Invitation link"
          text={open.invitation.link}
          warning={localLinkWarning(open.invitation.link)}
          onClose={close}
        />
      )}
      {open?.is === 'role' && (
        <RoleDialog person={open.person} mayBeNone={isEverywhere} change={calls.changeRole} onClose={close} />
      )}
      {open?.is === 'remove' && (
        <Confirm
          title={isEverywhere ? `Delete the account of ${open.person.email}?` : `Remove ${open.person.email}?`}
          act={isEverywhere ? 'Delete' : 'Remove'}
          run={() => calls.remove(open.person.id)}
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
        {deactivated && <State is="DEACTIVATED" />}
      </span>
      {email !== name && (
        <bdi className="block truncate text-soft" title={email}>
          {email}
        </bdi>
      )}
    </>
  )
}

/** The calls about people of one workspace, or of the whole installation, which have different paths. */

const query = { limit: 200 }

function peopleOf(workspaceId: string | null) {
  if (workspaceId === null) {
    return {
      key: ['everybody'],
      people: () => allItems(api.listInstallationOperators, { query }),
      invitations: () => allItems(api.listInstallationInvitations, { query }),
      invite: (body: NewInvitation) => api.inviteEverywhere({ body }),
      revoke: (invitationId: string) => api.revokeInstallationInvitation({ params: { invitationId } }),
      changeRole: (operatorId: string, role: Role | null) =>
        api.changeInstallationRole({ params: { operatorId }, body: { role } }),
      remove: (operatorId: string) => api.deleteOperator({ params: { operatorId } }),
    }
  }
  const params = { workspaceId }
  return {
    key: ['people', workspaceId],
    people: () => allItems(api.listOperators, { params, query }),
    invitations: () => allItems(api.listInvitations, { params, query }),
    invite: (body: NewInvitation) => api.invite({ params, body }),
    revoke: (invitationId: string) => api.revokeInvitation({ params: { ...params, invitationId } }),
    changeRole: (operatorId: string, role: Role | null) =>
      role === null
        ? api.removeOperator({ params: { ...params, operatorId } })
        : api.changeRole({ params: { ...params, operatorId }, body: { role } }),
    remove: (operatorId: string) => api.removeOperator({ params: { ...params, operatorId } }),
  }
}

interface InviteDialogProps {
  where: string
  invite: (body: NewInvitation) => Promise<CreatedInvitation>
  onInvited: (invitation: CreatedInvitation) => void
  onClose: () => void
}

function InviteDialog({ where, invite, onInvited, onClose }: InviteDialogProps) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const send = useMutation({
    mutationFn: () => invite({ email: email.trim(), role }),
    onSuccess: onInvited,
  })
  return (
    <FormDialog
      title={`Invite a person to ${where}`}
      act="Make the link"
      isReady={email.includes('@')}
      isBusy={send.isPending}
      error={send.error}
      onSubmit={() => send.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <Field
          label="E-mail"
          type="email"
          autoComplete="off"
          maxLength={LIMITS.emailChars}
          value={email}
          onChange={(event) => setEmail(event.target.value)}
          required
          autoFocus
        />
        <RoleChoice value={role} onChange={setRole} />
      </div>
    </FormDialog>
  )
}

interface RoleDialogProps {
  person: Operator
  /** Whether a person may have no role in the whole installation. */
  mayBeNone: boolean
  change: (operatorId: string, role: Role | null) => Promise<unknown>
  onClose: () => void
}

function RoleDialog({ person, mayBeNone, change, onClose }: RoleDialogProps) {
  const [role, setRole] = useState<Role>(person.role ?? 'viewer')
  const save = useMutation({
    mutationFn: (chosen: Role | null) => change(person.id, chosen),
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title={`Role of ${person.email}`}
      act="Change role"
      isReady={role !== person.role}
      isBusy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate(role)}
      onClose={onClose}
    >
      <RoleChoice value={role} onChange={setRole} />
      {mayBeNone && person.role !== null && (
        <Button className="mt-3" busy={save.isPending} onClick={() => save.mutate(null)}>
          No role in every workspace
        </Button>
      )}
    </FormDialog>
  )
}
