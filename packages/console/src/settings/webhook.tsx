/** What the list of webhooks and the page of one share. */
import type { Webhook } from '@tacho/contract/operator/webhook.ts'
import { Chip } from '../ui/chip.tsx'

export const webhooksKey = (environmentId: string) => ['webhooks', environmentId] as const

export function WebhookState({ webhook: { disabledAt, disabledReason } }: { webhook: Webhook }) {
  if (disabledAt === null) return <Chip tone="green">Active</Chip>
  return disabledReason === null ? <Chip>Disabled</Chip> : <Chip tone="red">Disabled by the server</Chip>
}
