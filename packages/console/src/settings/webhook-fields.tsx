import { LIMITS } from '@tacho/contract/limits.ts'
import type { Webhook } from '@tacho/contract/operator/webhook.ts'
import type { ReactNode } from 'react'
import { Field } from '../ui/field.tsx'
import { CheckList } from './check-list.tsx'
import { EVENT_OPTIONS } from './webhook.tsx'

export type WebhookDraft = Pick<Webhook, 'url' | 'description' | 'events'>

interface Props {
  draft: WebhookDraft
  onChange: (draft: WebhookDraft) => void
  /** Stands below the address. */
  children?: ReactNode
}

/** The fields of a webhook that can change later. */
export function WebhookFields({ draft, onChange, children }: Props) {
  const set = (change: Partial<WebhookDraft>) => onChange({ ...draft, ...change })
  return (
    <div className="flex flex-col gap-4">
      <Field
        label="Address"
        type="url"
        placeholder="https://"
        maxLength={LIMITS.webhookUrlChars}
        value={draft.url}
        onChange={(event) => set({ url: event.target.value })}
        autoComplete="off"
        autoFocus
        required
      />
      {children}
      <CheckList legend="Events" options={EVENT_OPTIONS} chosen={draft.events} onChange={(events) => set({ events })} />
      <Field
        label="Purpose"
        maxLength={LIMITS.descriptionChars}
        value={draft.description}
        onChange={(event) => set({ description: event.target.value })}
        autoComplete="off"
      />
    </div>
  )
}

export function isReady({ url, events }: WebhookDraft): boolean {
  return url.trim() !== '' && events.length > 0
}

export function webhookBody({ url, ...draft }: WebhookDraft): WebhookDraft {
  return { ...draft, url: url.trim() }
}
