import { useQuery, useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { allItems } from '@tacho/client/items.ts'
import type { CreatedOperatorToken, NewOperatorToken, OperatorToken } from '@tacho/contract/people/token.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import { api } from '../web/api.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { useNow, Time } from '../web/text/times.tsx'
import { Empty, Forbidden } from '../web/ui/states.tsx'
import {
  AllowedFrom,
  AllowedAddressesField,
  networksIn,
  CredentialName,
  CredentialState,
  Expires,
  hasEnded,
  usefulFirst,
  ExpiryField,
  expiryOf,
} from '../tenants/credential.tsx'
import { Confirm, ShownOnce, FormDialog, NameField } from '../web/ui/form-dialog.tsx'
import { roleWord, RoleChoice, ScopeTabs } from './role-choice.tsx'
import { SectionPage } from '../web/ui/section.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/tokens')

type Open = { is: 'new' } | { is: 'created'; token: CreatedOperatorToken } | { is: 'revoke'; token: OperatorToken }

export function TokensPage() {
  const { place } = route.useRouteContext()
  const { scope = 'workspace' } = route.useSearch()
  const navigate = useNavigate()
  const now = useNow()
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const { data: me } = useQuery(meQuery)
  const isAllowed = scope === 'everywhere' ? me?.installation === true : place.may('owner')
  const calls = tokensOf(scope === 'everywhere' ? null : place.workspace.id)
  const tokens = useQuery({ queryKey: calls.key, queryFn: calls.list, enabled: isAllowed })
  useKeys(isAllowed ? { n: () => setOpen({ is: 'new' }) } : {})
  if (!isAllowed && me)
    return <Forbidden>Only an owner makes operator tokens. Ask an owner of {place.workspace.name}.</Forbidden>

  const columns: Column<OperatorToken>[] = [
    { head: 'Token', main: true, cell: (token) => <CredentialName {...token} /> },
    { head: 'Role', wide: true, cell: ({ role }) => roleWord(role) },
    {
      head: 'Allowed from',
      wide: true,
      cell: ({ allowedAddresses }) => <AllowedFrom networks={allowedAddresses} />,
    },
    { head: 'Made by', wide: true, cell: ({ createdBy }) => (createdBy ? <bdi>{createdBy.name}</bdi> : 'unknown') },
    { head: 'Last used', wide: true, cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : 'never') },
    { head: 'Expires', wide: true, cell: ({ expiresAt }) => <Expires at={expiresAt} /> },
    { head: 'State', cell: (token) => <CredentialState credential={token} /> },
    {
      head: 'Actions',
      right: true,
      cell: (token) =>
        !hasEnded(token, now) && (
          <Button look="quiet" aria-label={`Revoke ${token.name}`} onClick={() => setOpen({ is: 'revoke', token })}>
            Revoke
          </Button>
        ),
    },
  ]
  return (
    <SectionPage
      title="Operator tokens"
      note="Service accounts for scripts and the command line. A token has a role, cannot sign in, and does not end with the person who made it."
      act={
        <Button look="accent" onClick={() => setOpen({ is: 'new' })}>
          New token
        </Button>
      }
    >
      <ScopeTabs
        workspace={place.workspace.name}
        scope={scope}
        onChange={(next) => void navigate({ to: '.', search: next === 'everywhere' ? { scope: next } : {} })}
      />
      <ListedTable
        label="Operator tokens"
        columns={columns}
        list={{ ...tokens, data: tokens.data && usefulFirst(tokens.data, now) }}
        empty={<Empty title="No token yet">Make one for a script that deploys, exports or decides.</Empty>}
      />
      {open?.is === 'new' && (
        <NewToken
          create={calls.create}
          onClose={close}
          onCreated={(token) => {
            setOpen({ is: 'created', token })
          }}
        />
      )}
      {open?.is === 'created' && (
        <ShownOnce
          title="The new token"
          note={`Give it to “${open.token.name}” as TACHO_OPERATOR_TOKEN. The server keeps only its hash.`}
          label="Operator token"
          text={open.token.token}
          onClose={close}
        />
      )}
      {open?.is === 'revoke' && (
        <Confirm
          title={`Revoke ${open.token.name}?`}
          act="Revoke"
          run={() => calls.revoke(open.token.id)}
          onClose={close}
        >
          Every server rejects this token within 5 seconds. This cannot be undone.
        </Confirm>
      )}
    </SectionPage>
  )
}

/** The calls about tokens of one workspace, or of all, which have different paths. */
function tokensOf(workspaceId: string | null) {
  const query = { limit: 200 }
  if (workspaceId === null) {
    return {
      key: ['tokens', 'everywhere'],
      list: () => allItems(api.listInstallationTokens, { query }),
      create: (body: NewOperatorToken) => api.createInstallationToken({ body }),
      revoke: (tokenId: string) => api.revokeInstallationToken({ params: { tokenId } }),
    }
  }
  const params = { workspaceId }
  return {
    key: ['tokens', workspaceId],
    list: () => allItems(api.listTokens, { params, query }),
    create: (body: NewOperatorToken) => api.createToken({ params, body }),
    revoke: (tokenId: string) => api.revokeToken({ params: { ...params, tokenId } }),
  }
}

interface Props {
  create: (body: NewOperatorToken) => Promise<CreatedOperatorToken>
  onCreated: (token: CreatedOperatorToken) => void
  onClose: () => void
}

function NewToken({ create, onCreated, onClose }: Props) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [days, setDays] = useState('90')
  const [allowed, setAllowed] = useState('')
  const make = useMutation({
    mutationFn: () =>
      create({ name: name.trim(), role, expiresAt: expiryOf(days), allowedAddresses: networksIn(allowed) }),
    onSuccess: onCreated,
  })
  return (
    <FormDialog
      title="New operator token"
      act="Create token"
      isReady={name.trim() !== ''}
      isBusy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <NameField hint="The script that will use it" value={name} onChange={setName} />
        <RoleChoice value={role} onChange={setRole} />
        <ExpiryField days={days} onChange={setDays} />
        <AllowedAddressesField value={allowed} onChange={setAllowed} />
      </div>
    </FormDialog>
  )
}
