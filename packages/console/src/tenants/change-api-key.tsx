import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { SelectField } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { AllowedAddressesField, networksIn } from './allowed-addresses.tsx'
import { CheckList } from '../web/ui/check-list.tsx'
import { EXPIRIES, expiryOf } from './credential.tsx'
import { NameField } from '../web/ui/name-field.tsx'
import { RateField } from './rate-field.tsx'
import { SCOPE_NOTES } from './scopes.ts'

interface ChangeApiKeyProps {
  environmentId: string
  apiKey: ApiKey
  onSettled: () => Promise<unknown>
  onClose: () => void
}

const KEEP = 'keep'

/** A key can lose scopes, but never get more. */
export function ChangeApiKey({ environmentId, apiKey, onSettled, onClose }: ChangeApiKeyProps) {
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
    onSettled,
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
