/** Shared by the list of webhooks, the page of a webhook, and their dialogs. */
import { allItems } from '@tacho/client/items.ts'
import type { AlertKind } from '@tacho/contract/messages/alert.ts'
import type { Webhook, WebhookEvent } from '@tacho/contract/messages/webhook.ts'
import { WEBHOOK_EVENTS } from '@tacho/contract/engine/words.ts'
import { queryOptions } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { DamagedChip, State } from '../web/ui/state.tsx'

export const webhooksQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['webhooks', environmentId],
    queryFn: () => allItems(api.listWebhooks, { params: { environmentId }, query: { limit: 200 } }),
  })

const EVENT_NOTES: Record<WebhookEvent, string> = {
  'approval.requested': 'an agent waits for a decision',
  'approval.decided': 'a person decided',
  'approval.expired': 'not decided in time',
  'approval.withdrawn': 'the call that asked is gone',
  'issue.opened': 'something new goes wrong',
  'issue.regressed': 'a resolved issue came back',
  'alert.firing': 'a rule about runs or costs holds',
  'alert.resolved': 'such a rule is over',
  'budget.reached': '50, 80 or 100 % are used',
  'run.failed': 'a run failed, and why',
  'run.incomplete': 'events of a run are missing',
}

/** Events of alerts and budgets. */
export const ALERT_EVENTS = ['alert.firing', 'alert.resolved', 'budget.reached'] as const satisfies WebhookEvent[]

/** Events that an alert of this kind sends. */
export const eventsOf = (kind: AlertKind): readonly WebhookEvent[] =>
  kind === 'budget' ? ['budget.reached'] : ['alert.firing', 'alert.resolved']

/**
 * Whether the webhook has a secret, with which the receiver checks signatures. Chats, PagerDuty and mail cannot check
 * one.
 */
export const hasSecret = ({ format }: Pick<Webhook, 'format'>): boolean => format === 'standard'

/** Events with their descriptions, for a list of checkboxes. */
export const EVENT_OPTIONS = WEBHOOK_EVENTS.map((event) => [event, EVENT_NOTES[event]] as const)

export function WebhookState({ webhook: { disabledAt, disabledReason, damaged } }: { webhook: Webhook }) {
  if (damaged) return <DamagedChip note="It changed on the disk, and nothing is sent. Remove it and create it again." />
  if (disabledAt === null) return <State is="ACTIVE" />
  return <State is={disabledReason === null ? 'DISABLED' : 'SHUT_OFF'} />
}
