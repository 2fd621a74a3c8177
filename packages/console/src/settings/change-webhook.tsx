import { LIMITS } from '@tacho/contract/limits.ts'
import type { Webhook, WebhookEvent } from '@tacho/contract/operator/webhook.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { CheckList } from './check-list.tsx'
import { EVENT_OPTIONS } from './webhook.tsx'

interface Props {
  params: { environmentId: string; webhookId: string }
  webhook: Webhook
  onSettled: () => Promise<unknown>
  onClose: () => void
}

/** Changes the address, the events and the purpose of a webhook. Its secret stays. */
export function ChangeWebhook({ params, webhook, onSettled, onClose }: Props) {
  const [url, setUrl] = useState(webhook.url)
  const [description, setDescription] = useState(webhook.description)
  const [events, setEvents] = useState<WebhookEvent[]>(webhook.events)
  const change = useMutation({
    mutationFn: () => api.changeWebhook({ params, body: { url: url.trim(), description, events } }),
    onSuccess: onClose,
    onSettled,
  })
  return (
    <FormDialog
      title="Change webhook"
      act="Change webhook"
      isReady={url.trim() !== '' && events.length > 0}
      isBusy={change.isPending}
      error={change.error}
      onSubmit={() => change.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <Field
          label="Address"
          type="url"
          maxLength={LIMITS.webhookUrlChars}
          value={url}
          onChange={(event) => setUrl(event.target.value)}
          autoComplete="off"
          autoFocus
          required
        />
        <CheckList legend="Events" options={EVENT_OPTIONS} chosen={events} onChange={setEvents} />
        <Field
          label="Purpose"
          maxLength={LIMITS.descriptionChars}
          value={description}
          onChange={(event) => setDescription(event.target.value)}
          autoComplete="off"
        />
        <p className="text-sm text-soft">The secret stays the same. Waiting messages go to the new address.</p>
      </div>
    </FormDialog>
  )
}
