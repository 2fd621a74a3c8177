import type { ApiKey, CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import { allItems } from '@tacho/client/items.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { State } from '../web/ui/state.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { number } from '../web/text/format.ts'
import { RowMenu } from '../web/ui/overlay.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { useNow, Time } from '../web/text/times.tsx'
import { Empty } from '../web/ui/states.tsx'
import { AllowedFrom, CredentialName, CredentialState, Expires, hasEnded, usefulFirst } from './credential.tsx'
import { ChangeApiKey, NewApiKey, RotateApiKey } from './api-key-dialogs.tsx'
import { Confirm, ShownOnce } from '../web/ui/form-dialog.tsx'
import { SectionPage } from '../web/ui/section.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/api-keys')

type Open =
  | { is: 'new' }
  | { is: 'created' | 'rotated'; key: CreatedApiKey }
  | { is: 'change' | 'rotate' | 'revoke'; key: ApiKey }

export function ApiKeysPage() {
  const { place } = route.useRouteContext()
  const params = { environmentId: place.environment.id }
  const now = useNow()
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const queryKey = ['api keys', params.environmentId]
  const keys = useQuery({ queryKey, queryFn: () => allItems(api.listApiKeys, { params, query: { limit: 200 } }) })
  const canChange = place.may('admin')
  useKeys(canChange ? { n: () => setOpen({ is: 'new' }) } : {})

  const columns: Column<ApiKey>[] = [
    { head: 'Key', main: true, cell: (key) => <CredentialName {...key} /> },
    { head: 'Scopes', wide: true, cell: ({ scopes }) => <Scopes scopes={scopes} /> },
    {
      head: 'Allowed from',
      wide: true,
      cell: ({ allowedAddresses }) => <AllowedFrom networks={allowedAddresses} />,
    },
    { head: 'Limit', right: true, wide: true, cell: (key) => rateText(key) },
    { head: 'Lost', right: true, wide: true, cell: (key) => <Lost apiKey={key} /> },
    { head: 'Last used', wide: true, cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : 'never') },
    { head: 'Expires', wide: true, cell: ({ expiresAt }) => <Expires at={expiresAt} /> },
    { head: 'State', cell: (key) => <KeyState apiKey={key} now={now} /> },
  ]
  if (canChange) {
    columns.push({
      head: 'Actions',
      right: true,
      cell: (key) =>
        !hasEnded(key, now) && (
          <RowMenu
            name={key.name}
            acts={[
              { word: 'Change…', act: () => setOpen({ is: 'change', key }) },
              ...(key.replacedBy === null ? [{ word: 'Rotate…', act: () => setOpen({ is: 'rotate', key }) }] : []),
              { word: 'Revoke…', act: () => setOpen({ is: 'revoke', key }) },
            ]}
          />
        ),
    })
  }
  return (
    <SectionPage
      title="API keys"
      note={`Agents authenticate with a key. A key selects ${place.workspace.name} / ${place.environment.name} and does only what its scopes allow.`}
      act={
        canChange && (
          <Button look="accent" onClick={() => setOpen({ is: 'new' })}>
            New key
          </Button>
        )
      }
    >
      <ListedTable
        label="API keys"
        columns={columns}
        list={{ ...keys, data: keys.data && usefulFirst(keys.data, now) }}
        empty={
          <Empty title={`${place.environment.name} has no key yet`}>
            {canChange ? 'Create one for the first agent.' : 'An admin of this workspace can create one.'}
          </Empty>
        }
      />
      {open?.is === 'new' && (
        <NewApiKey
          environmentId={params.environmentId}
          onClose={close}
          onCreated={(key) => {
            setOpen({ is: 'created', key })
          }}
        />
      )}
      {open?.is === 'change' && <ChangeApiKey environmentId={params.environmentId} apiKey={open.key} onClose={close} />}
      {open?.is === 'rotate' && (
        <RotateApiKey
          environmentId={params.environmentId}
          apiKey={open.key}
          onClose={close}
          onRotated={(key) => {
            setOpen({ is: 'rotated', key })
          }}
        />
      )}
      {(open?.is === 'created' || open?.is === 'rotated') && (
        <ShownOnce
          title="The new key"
          note={`Give it to “${open.key.name}” as TACHO_API_KEY. The server keeps only its hash.${open.is === 'rotated' ? ' The old key still works for the time that you chose.' : ''}`}
          label="API key"
          text={open.key.key}
          onClose={close}
        />
      )}
      {open?.is === 'revoke' && (
        <Confirm
          title={`Revoke ${open.key.name}?`}
          act="Revoke"
          run={() => api.revokeApiKey({ params: { ...params, keyId: open.key.id } })}
          onClose={close}
        >
          Every server rejects this key within 5 seconds. Agents that still use it stop recording, and their protected
          tools stop. This cannot be undone.
        </Confirm>
      )}
    </SectionPage>
  )
}

function KeyState({ apiKey, now }: { apiKey: ApiKey; now: number }) {
  if (apiKey.replacedBy === null || apiKey.damaged || hasEnded(apiKey, now))
    return <CredentialState credential={apiKey} />
  return <State is="REPLACED" note={`${apiKey.replacedBy} takes its place. This key works until it expires.`} />
}

function Lost({ apiKey: { lostRequests, lastLostReason } }: { apiKey: ApiKey }) {
  if (lostRequests === 0) return null
  return (
    <span className="text-red" title={`OpenTelemetry requests that were refused for good: ${lastLostReason}`}>
      {number(lostRequests)}
    </span>
  )
}

function Scopes({ scopes }: { scopes: ApiKey['scopes'] }) {
  return (
    <span className="flex w-60 flex-wrap whitespace-normal gap-x-2 font-mono text-xs text-soft">
      {scopes.map((scope) => (
        <span key={scope}>{scope}</span>
      ))}
    </span>
  )
}

function rateText({ requestsPerSecond }: ApiKey) {
  return requestsPerSecond === null ? <span className="text-soft">default</span> : `${number(requestsPerSecond)}/s`
}
