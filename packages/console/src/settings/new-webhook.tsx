import { LIMITS } from '@tacho/contract/limits.ts'
import type { CreatedWebhook, WebhookEvent, WebhookFormat } from '@tacho/contract/operator/webhook.ts'
import { WEBHOOK_EVENTS } from '@tacho/contract/words.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { CheckList } from './check-list.tsx'
import { EVENT_OPTIONS } from './webhook.tsx'
import { RadioCards } from './radio-cards.tsx'

const FORMATS = [
  { value: 'standard', name: 'Signed JSON', note: 'For your own programs (Standard Webhooks).' },
  { value: 'slack', name: 'Slack', note: 'A message with a link, for an incoming webhook of Slack.' },
] as const

interface Props {
  environmentId: string
  onCreated: (webhook: CreatedWebhook) => void
  onClose: () => void
}

export function NewWebhook({ environmentId, onCreated, onClose }: Props) {
  const [url, setUrl] = useState('')
  const [description, setDescription] = useState('')
  const [format, setFormat] = useState<WebhookFormat>('standard')
  const [events, setEvents] = useState<WebhookEvent[]>([...WEBHOOK_EVENTS])
  const create = useMutation({
    mutationFn: () =>
      api.createWebhook({ params: { environmentId }, body: { url: url.trim(), description, format, events } }),
    onSuccess: onCreated,
  })
  return (
    <FormDialog
      title="New webhook"
      act="Create webhook"
      isReady={url.trim() !== '' && events.length > 0}
      isBusy={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <Field
          label="Address"
          type="url"
          placeholder="https://"
          maxLength={LIMITS.webhookUrlChars}
          value={url}
          onChange={(event) => setUrl(event.target.value)}
          autoComplete="off"
          autoFocus
          required
        />
        <RadioCards legend="Format" value={format} options={FORMATS} onChange={setFormat} />
        <CheckList legend="Events" options={EVENT_OPTIONS} chosen={events} onChange={setEvents} />
        <Field
          label="Purpose"
          maxLength={LIMITS.descriptionChars}
          value={description}
          onChange={(event) => setDescription(event.target.value)}
          autoComplete="off"
        />
      </div>
    </FormDialog>
  )
}
