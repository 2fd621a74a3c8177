import type { Webhook } from '@tacho/contract/operator/webhook.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { FormDialog } from '../ui/form-dialog.tsx'
import { webhookBody, isReady, WebhookFields, type WebhookDraft } from './webhook-fields.tsx'

interface Props {
  params: { environmentId: string; webhookId: string }
  webhook: Webhook
  onSettled: () => Promise<unknown>
  onClose: () => void
}

/** Changes the address, the events and the purpose of a webhook. Its secret stays. */
export function ChangeWebhook({ params, webhook: { url, description, events }, onSettled, onClose }: Props) {
  const [draft, setDraft] = useState<WebhookDraft>({ url, description, events })
  const change = useMutation({
    mutationFn: () => api.changeWebhook({ params, body: webhookBody(draft) }),
    onSuccess: onClose,
    onSettled,
  })
  return (
    <FormDialog
      title="Change webhook"
      act="Change webhook"
      isReady={isReady(draft)}
      isBusy={change.isPending}
      error={change.error}
      onSubmit={() => change.mutate()}
      onClose={onClose}
    >
      <WebhookFields draft={draft} onChange={setDraft} />
      <p className="mt-4 text-sm text-soft">The secret stays the same. Waiting messages go to the new address.</p>
    </FormDialog>
  )
}
