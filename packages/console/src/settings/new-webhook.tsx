import type { CreatedWebhook, WebhookFormat } from '@tacho/contract/operator/webhook.ts'
import { WEBHOOK_EVENTS } from '@tacho/contract/words.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { FormDialog } from '../ui/form-dialog.tsx'
import { RadioCards } from './radio-cards.tsx'
import { webhookBody, isReady, WebhookFields, type WebhookDraft } from './webhook-fields.tsx'

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
  const [draft, setDraft] = useState<WebhookDraft>({ url: '', description: '', events: [...WEBHOOK_EVENTS] })
  const [format, setFormat] = useState<WebhookFormat>('standard')
  const create = useMutation({
    mutationFn: () => api.createWebhook({ params: { environmentId }, body: { ...webhookBody(draft), format } }),
    onSuccess: onCreated,
  })
  return (
    <FormDialog
      title="New webhook"
      act="Create webhook"
      isReady={isReady(draft)}
      isBusy={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <WebhookFields draft={draft} onChange={setDraft}>
        <RadioCards legend="Format" value={format} options={FORMATS} onChange={setFormat} />
      </WebhookFields>
    </FormDialog>
  )
}
