import type { ApiKey, CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { SelectField } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { EXPIRIES, expiryOf } from './credential.tsx'

const HOUR_MS = 3_600_000
const OVERLAPS = [
  ['1', 'an hour'],
  ['24', 'a day'],
  ['168', '7 days'],
  ['720', '30 days'],
] as const
const KEEP = 'keep'

interface RotateApiKeyProps {
  environmentId: string
  apiKey: ApiKey
  onRotated: (key: CreatedApiKey) => void
  onClose: () => void
}

/** A new key with the same scopes; the old one works until agents have the new one. */
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
