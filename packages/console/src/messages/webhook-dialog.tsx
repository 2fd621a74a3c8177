import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { CreatedWebhook, Webhook, WebhookEvent, WebhookFormat } from '@tacho/contract/messages/webhook.ts'
import { INPUT_FORMATS, WEBHOOK_EVENTS } from '@tacho/contract/engine/words.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Field, CheckList, RadioCards } from '../web/ui/field.tsx'
import { withLabels } from '../web/ui/field-labels.ts'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { EVENT_OPTIONS, hasSecret } from './webhook.tsx'

const FORMATS = [
  { value: 'standard', name: 'Signed JSON', note: 'For your own programs (Standard Webhooks).' },
  {
    value: 'slack',
    name: 'Slack',
    note: 'A message with a link, and with buttons if you want, for an incoming webhook of Slack.',
  },
  { value: 'teams', name: 'Microsoft Teams', note: 'A card with a link, for a workflow that posts to a channel.' },
  {
    value: 'pagerduty',
    name: 'PagerDuty',
    note: 'Events, version 2: https://events.pagerduty.com/v2/enqueue?routing_key=… with the integration key.',
  },
  { value: 'mail', name: 'Mail', note: 'To a member of the workspace, if the server has a mail server.' },
] as const
const MAILTO = 'mailto:'
const SECRET_LABEL = 'Signing secret of the Slack app'
/** The formats of chats and pagers, which cannot read signed JSON, by host. */
const HOSTS: ReadonlyMap<string, WebhookFormat> = new Map([
  ['hooks.slack.com', 'slack'],
  ['hooks.slack-gov.com', 'slack'],
  ['events.pagerduty.com', 'pagerduty'],
  ['events.eu.pagerduty.com', 'pagerduty'],
])

interface Props {
  environmentId: string
  /** The webhook to change; its format and secret stay. Absent: create one. */
  webhook?: Webhook
  /** Initial events of a new webhook; absent: all. */
  events?: readonly WebhookEvent[]
  onDone: (created: CreatedWebhook | null) => void
  onClose: () => void
}

const formatOfAddress = (address: string): WebhookFormat =>
  (URL.canParse(address) && HOSTS.get(new URL(address).hostname)) || 'standard'

export function WebhookDialog({ environmentId, webhook, events = WEBHOOK_EVENTS, onDone, onClose }: Props) {
  const [draft, setDraft] = useState<Pick<Webhook, 'url' | 'description' | 'events' | 'showsInput'>>({
    url: webhook?.url ?? '',
    description: webhook?.description ?? '',
    events: webhook?.events ?? [...events],
    showsInput: webhook?.showsInput ?? false,
  })
  const set = (change: Partial<typeof draft>) => setDraft({ ...draft, ...change })
  const [chosenFormat, setFormat] = useState<WebhookFormat | null>(webhook?.format ?? null)
  const format = chosenFormat ?? formatOfAddress(draft.url.trim())
  const [secret, setSecret] = useState('')
  const isMail = format === 'mail'
  const addressLabel = isMail ? 'E-mail address of a member' : 'Address'
  const mayShowInput = INPUT_FORMATS.includes(format)
  const address = draft.url.trim()
  const url = isMail && address !== '' && !address.startsWith(MAILTO) ? MAILTO + address : address
  const save = useMutation({
    async mutationFn() {
      const signingSecret = secret.trim()
      const isGiven = format === 'slack' && signingSecret !== ''
      const body = { ...draft, url, showsInput: draft.showsInput && mayShowInput, ...(isGiven && { signingSecret }) }
      if (!webhook) return api.createWebhook({ params: { environmentId }, body: { ...body, format } })
      await api.changeWebhook({ params: { environmentId, webhookId: webhook.id }, body })
      return null
    },
    onSuccess: onDone,
  })
  return (
    <FormDialog
      title={webhook ? 'Change webhook' : 'New webhook'}
      act={webhook ? 'Change webhook' : 'Create webhook'}
      isReady={url !== '' && draft.events.length > 0}
      isBusy={save.isPending}
      error={withLabels(save.error, { url: addressLabel, signingSecret: SECRET_LABEL })}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <Field
          label={addressLabel}
          type={isMail ? 'text' : 'url'}
          placeholder={isMail ? '' : 'https://'}
          maxLength={LIMITS.webhookUrlChars}
          value={draft.url}
          onChange={(event) => set({ url: event.target.value })}
          autoComplete="off"
          autoFocus
          required
        />
        {!webhook && <RadioCards legend="Format" value={format} options={FORMATS} onChange={setFormat} />}
        {format === 'slack' && (
          <Field
            label={SECRET_LABEL}
            hint={secretHint(webhook)}
            type="password"
            pattern={`[0-9A-Za-z]{${LIMITS.slackSecretCharsMin},${LIMITS.slackSecretCharsMax}}`}
            maxLength={LIMITS.slackSecretCharsMax}
            value={secret}
            onChange={(event) => setSecret(event.target.value)}
            autoComplete="off"
          />
        )}
        <CheckList
          legend="Events"
          options={EVENT_OPTIONS}
          chosen={draft.events}
          onChange={(chosen) => set({ events: chosen })}
        />
        {mayShowInput && (
          <label className="flex items-start gap-2.5 text-sm">
            <input
              type="checkbox"
              checked={draft.showsInput}
              onChange={(event) => set({ showsInput: event.target.checked })}
              className="mt-0.5 size-4 accent-accent-fill"
            />
            <span>
              Show what would run
              <span className="block text-soft">
                Requests for approval have the beginning of the input, as the agent masked it. Everyone who reads the
                messages sees it.
              </span>
            </span>
          </label>
        )}
        <Field
          label="Purpose"
          maxLength={LIMITS.descriptionChars}
          value={draft.description}
          onChange={(event) => set({ description: event.target.value })}
          autoComplete="off"
        />
        {webhook && (
          <p className="text-sm text-soft">
            {hasSecret(webhook) && 'The secret stays the same. '}Waiting messages go to the new address.
          </p>
        )}
      </div>
    </FormDialog>
  )
}

function secretHint(webhook: Webhook | undefined): string {
  if (webhook && webhook.interactionsUrl !== null) return 'Empty: it stays. A new one removes all links of Slack users.'
  return 'Optional. With it, people approve and reject by buttons of the message.'
}
