/** Dialogs to create, change and rotate API keys. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { CreatedApiKey, ApiKey } from '@tacho/contract/tenants/api-key.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Scope } from '@tacho/contract/web/route.ts'
import { api } from '../web/api.ts'
import { FormDialog, NameField } from '../web/ui/form-dialog.tsx'
import { number } from '../web/text/format.ts'
import { AllowedAddressesField, networksIn, ExpiryField, expiryOf, EXPIRIES } from './credential.tsx'
import { CheckList, RadioCards, SelectField, Field } from '../web/ui/field.tsx'

/** Common purposes of a key, with the scopes. */
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

interface ChangeApiKeyProps {
  environmentId: string
  apiKey: ApiKey
  onClose: () => void
}

const KEEP = 'keep'

/** Changes a key. A key can lose scopes, but never get more. */
export function ChangeApiKey({ environmentId, apiKey, onClose }: ChangeApiKeyProps) {
  const [name, setName] = useState(apiKey.name)
  const [scopes, setScopes] = useState(apiKey.scopes)
  const [rate, setRate] = useState(apiKey.requestsPerSecond?.toString() ?? '')
  const [days, setDays] = useState(KEEP)
  const [allowed, setAllowed] = useState(apiKey.allowedAddresses?.join(', ') ?? '')
  const save = useMutation({
    mutationFn: () =>
      api.changeApiKey({
        params: { environmentId, keyId: apiKey.id },
        body: {
          name: name.trim(),
          scopes,
          requestsPerSecond: rate === '' ? null : Number(rate),
          allowedAddresses: networksIn(allowed),
          ...(days !== KEEP && { expiresAt: expiryOf(days) }),
        },
      }),
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title="Change this key"
      act="Change key"
      isReady={name.trim() !== '' && scopes.length > 0}
      isBusy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <NameField hint="The agent or program that uses it" value={name} onChange={setName} />
        <CheckList
          legend="Scopes, to take away"
          options={SCOPE_NOTES.filter(([scope]) => apiKey.scopes.includes(scope))}
          chosen={scopes}
          onChange={setScopes}
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <SelectField label="Expires" value={days} options={[[KEEP, 'As it is'], ...EXPIRIES]} onChange={setDays} />
          <RateField value={rate} onChange={setRate} />
        </div>
        <AllowedAddressesField value={allowed} onChange={setAllowed} />
      </div>
    </FormDialog>
  )
}

const HOUR_MS = 3_600_000
const OVERLAPS = [
  ['1', 'an hour'],
  ['24', 'a day'],
  ['168', '7 days'],
  ['720', '30 days'],
] as const

interface RotateApiKeyProps {
  environmentId: string
  apiKey: ApiKey
  onRotated: (key: CreatedApiKey) => void
  onClose: () => void
}

/** Creates a new key with the same scopes. The old one works until agents have the new one. */
export function RotateApiKey({ environmentId, apiKey, onRotated, onClose }: RotateApiKeyProps) {
  const [overlap, setOverlap] = useState('24')
  const [days, setDays] = useState(KEEP)
  const rotate = useMutation({
    mutationFn: () =>
      api.rotateApiKey({
        params: { environmentId, keyId: apiKey.id },
        body: {
          oldValidUntil: new Date(Date.now() + Number(overlap) * HOUR_MS).toISOString(),
          ...(days !== KEEP && { expiresAt: expiryOf(days) }),
        },
      }),
    onSuccess: onRotated,
  })
  return (
    <FormDialog
      title={`Rotate ${apiKey.name}`}
      act="Create the new key"
      isBusy={rotate.isPending}
      error={rotate.error}
      onSubmit={() => rotate.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <p className="text-sm text-soft">
          A new key with the same name, scopes and rate takes its place. Both work until the old one ends.
        </p>
        <div className="grid gap-4 sm:grid-cols-2">
          <SelectField label="The old key works for" value={overlap} options={OVERLAPS} onChange={setOverlap} />
          <SelectField
            label="The new key expires"
            value={days}
            options={[[KEEP, 'Like the old one'], ...EXPIRIES]}
            onChange={setDays}
          />
        </div>
      </div>
    </FormDialog>
  )
}

/** The scopes, with descriptions. */
const SCOPE_NOTES: readonly (readonly [Scope, string])[] = [
  ['events:write', 'record events, report issues, ask for approval'],
  ['config:read', 'load prompts (with policies:read)'],
  ['policies:read', 'load policies, read approvals'],
  ['usage:read', 'list runs, read their events'],
]

interface RateFieldProps {
  hint?: string
  /** '' means the service's default. */
  value: string
  onChange: (value: string) => void
}

/** A field for the rate limit of a key. */
function RateField({ hint, value, onChange }: RateFieldProps) {
  return (
    <Field
      label="Requests per second"
      type="number"
      inputMode="numeric"
      min={1}
      max={LIMITS.requestsPerSecondMax}
      step={1}
      placeholder="default"
      {...(hint !== undefined && { hint })}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
