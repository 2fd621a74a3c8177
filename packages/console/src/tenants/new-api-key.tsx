import type { CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Scope } from '@tacho/contract/web/route.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { number } from '../web/text/format.ts'
import { AllowedAddressesField, networksIn } from './allowed-addresses.tsx'
import { ExpiryField, expiryOf } from './credential.tsx'
import { CheckList } from '../web/ui/check-list.tsx'
import { RadioCards } from '../web/ui/radio-cards.tsx'
import { NameField } from '../web/ui/name-field.tsx'
import { RateField } from './rate-field.tsx'
import { SCOPE_NOTES } from './scopes.ts'

/** What people want a key for. */
const PURPOSES = [
  {
    value: 'agent',
    name: 'An agent',
    note: 'Records events, loads prompts and policies, asks for approval.',
  },
  { value: 'recording', name: 'Recording only', note: 'Records events and reports issues.' },
  { value: 'reading', name: 'Reading runs', note: 'Lists runs and reads their events.' },
  { value: 'chosen', name: 'Chosen scopes', note: 'For everything else.' },
] as const
type Purpose = (typeof PURPOSES)[number]['value']

const PURPOSE_SCOPES: Record<Exclude<Purpose, 'chosen'>, Scope[]> = {
  agent: ['events:write', 'config:read', 'policies:read'],
  recording: ['events:write'],
  reading: ['usage:read'],
}

interface NewApiKeyProps {
  environmentId: string
  onCreated: (key: CreatedApiKey) => void
  onClose: () => void
}

export function NewApiKey({ environmentId, onCreated, onClose }: NewApiKeyProps) {
  const [name, setName] = useState('')
  const [purpose, setPurpose] = useState<Purpose>('agent')
  const [chosen, setChosen] = useState<Scope[]>(['events:write'])
  const [days, setDays] = useState('')
  const [rate, setRate] = useState('')
  const [allowed, setAllowed] = useState('')
  const scopes = purpose === 'chosen' ? chosen : PURPOSE_SCOPES[purpose]
  const create = useMutation({
    mutationFn: () =>
      api.createApiKey({
        params: { environmentId },
        body: {
          name: name.trim(),
          scopes,
          expiresAt: expiryOf(days),
          requestsPerSecond: rate === '' ? null : Number(rate),
          allowedAddresses: networksIn(allowed),
        },
      }),
    onSuccess: onCreated,
  })
  return (
    <FormDialog
      title="New API key"
      act="Create key"
      isReady={name.trim() !== '' && scopes.length > 0}
      isBusy={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <NameField hint="The agent or program that will use it" value={name} onChange={setName} />
        <RadioCards legend="For" value={purpose} options={PURPOSES} onChange={setPurpose} />
        {purpose === 'chosen' && (
          <CheckList legend="Scopes" options={SCOPE_NOTES} chosen={chosen} onChange={setChosen} />
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <ExpiryField days={days} onChange={setDays} />
          <RateField hint={`Up to ${number(LIMITS.requestsPerSecondMax)}`} value={rate} onChange={setRate} />
        </div>
        <AllowedAddressesField value={allowed} onChange={setAllowed} />
      </div>
    </FormDialog>
  )
}
