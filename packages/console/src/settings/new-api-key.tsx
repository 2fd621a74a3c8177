import type { CreatedApiKey } from '@tacho/contract/operator/api-key.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { SCOPES, type Scope } from '@tacho/contract/route.ts'
import { useMutation } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { api } from '../api.ts'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { number } from '../ui/format.ts'
import { ExpiryField, expiryOf } from './expiry.tsx'

/** What people want a key for. The last one shows the scopes themselves. */
const PURPOSES: readonly { name: string; note: string; scopes: readonly Scope[] | null }[] = [
  {
    name: 'An agent',
    note: 'Records events, loads prompts and policies, asks for approval.',
    scopes: ['events:write', 'config:read', 'policies:read'],
  },
  { name: 'Recording only', note: 'Records events and reports issues.', scopes: ['events:write'] },
  { name: 'Reading runs', note: 'Lists runs and reads their events.', scopes: ['usage:read'] },
  { name: 'Chosen scopes', note: 'For everything else.', scopes: null },
]

const SCOPE_NOTES: Record<Scope, string> = {
  'events:write': 'record events, report issues, ask for approval',
  'config:read': 'load prompts (with policies:read)',
  'policies:read': 'load policies, read approvals',
  'usage:read': 'list runs, read their events',
}

interface Props {
  environmentId: string
  onCreated: (key: CreatedApiKey) => void
  onClose: () => void
}

export function NewApiKey({ environmentId, onCreated, onClose }: Props) {
  const id = useId()
  const [name, setName] = useState('')
  const [purpose, setPurpose] = useState(0)
  const [chosen, setChosen] = useState<readonly Scope[]>(['events:write'])
  const [days, setDays] = useState('')
  const [rate, setRate] = useState('')
  const scopes = PURPOSES[purpose]?.scopes ?? chosen
  const create = useMutation({
    mutationFn: () =>
      api.createApiKey({
        params: { environmentId },
        body: {
          name: name.trim(),
          scopes: [...scopes],
          expiresAt: expiryOf(days),
          requestsPerSecond: rate === '' ? null : Number(rate),
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
        <Field
          label="Name"
          hint="The agent or program that will use it"
          value={name}
          onChange={(event) => setName(event.target.value)}
          maxLength={LIMITS.nameChars}
          autoComplete="off"
          autoFocus
          required
        />
        <fieldset>
          <legend className="mb-1 text-sm font-medium">For</legend>
          <div className="overflow-hidden rounded-lg border border-line">
            {PURPOSES.map((option, index) => (
              <label
                key={option.name}
                className="flex cursor-pointer items-start gap-2.5 border-b border-line px-3 py-2 last:border-0 hover:bg-hover has-checked:bg-accent-wash"
              >
                <input
                  type="radio"
                  name={id}
                  checked={index === purpose}
                  onChange={() => setPurpose(index)}
                  className="mt-1 accent-accent"
                />
                <span className="text-sm">
                  <span className="block font-medium">{option.name}</span>
                  <span className="text-soft">{option.note}</span>
                </span>
              </label>
            ))}
          </div>
        </fieldset>
        {PURPOSES[purpose]?.scopes === null && <ScopeChoice chosen={chosen} onChange={setChosen} />}
        <div className="grid gap-4 sm:grid-cols-2">
          <ExpiryField days={days} onChange={setDays} />
          <Field
            label="Requests per second"
            type="number"
            inputMode="numeric"
            min={1}
            max={LIMITS.requestsPerSecondMax}
            step={1}
            placeholder="default"
            hint={`Up to ${number(LIMITS.requestsPerSecondMax)}`}
            value={rate}
            onChange={(event) => setRate(event.target.value)}
          />
        </div>
      </div>
    </FormDialog>
  )
}

interface ScopeProps {
  chosen: readonly Scope[]
  onChange: (scopes: readonly Scope[]) => void
}

function ScopeChoice({ chosen, onChange }: ScopeProps) {
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">Scopes</legend>
      {SCOPES.map((scope) => (
        <label key={scope} className="flex cursor-pointer items-baseline gap-2.5 py-1 text-sm">
          <input
            type="checkbox"
            checked={chosen.includes(scope)}
            onChange={() =>
              onChange(SCOPES.filter((one) => (one === scope ? !chosen.includes(scope) : chosen.includes(one))))
            }
            className="accent-accent"
          />
          <span>
            <code className="font-mono">{scope}</code> <span className="text-soft">{SCOPE_NOTES[scope]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}
