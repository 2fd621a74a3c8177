import type { CreatedWebhook, Webhook } from '@tacho/contract/messages/webhook.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../web/ui/button.tsx'
import { ROW_LINK, type Column, ListedTable } from '../web/ui/data-table.tsx'
import { useKeys, useListKeys } from '../web/ui/keys.ts'
import { Empty } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { SectionPage } from '../web/ui/section.tsx'
import { ShownOnce } from '../web/ui/form-dialog.tsx'
import { WebhookDialog } from './webhook-dialog.tsx'
import { hasSecret, WebhookState, webhooksQuery } from './webhook.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/webhooks')

export function WebhooksPage() {
  const names = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [open, setOpen] = useState<'new' | CreatedWebhook | null>(null)
  const query = webhooksQuery(place.environment.id)
  const webhooks = useQuery(query)
  const canChange = place.may('admin')
  useKeys(canChange ? { n: () => setOpen('new') } : {})
  const current = useListKeys({
    items: webhooks.data ?? [],
    keyOf: ({ id }) => id,
    open: ({ id }) =>
      void navigate({
        to: '/w/$workspace/$environment/settings/webhooks/$webhookId',
        params: { ...names, webhookId: id },
      }),
    reset: place.environment.id,
  })
  const columns: Column<Webhook>[] = [
    {
      head: 'Address',
      main: true,
      cell: ({ id, url, description }) => (
        <>
          <Link
            to="/w/$workspace/$environment/settings/webhooks/$webhookId"
            params={{ ...names, webhookId: id }}
            title={url}
            className={ROW_LINK}
          >
            <bdi>{url || 'Damaged address'}</bdi>
          </Link>
          {description !== '' && <bdi className="block truncate text-soft">{description}</bdi>}
        </>
      ),
    },
    { head: 'Format', wide: true, cell: ({ format }) => format },
    {
      head: 'Events',
      right: true,
      wide: true,
      cell: ({ events }) => <span title={events.join(', ')}>{events.length}</span>,
    },
    { head: 'Created', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    { head: 'State', cell: (webhook) => <WebhookState webhook={webhook} /> },
  ]
  return (
    <SectionPage
      title="Webhooks"
      note={`Addresses that hear about approvals, issues and alerts of ${place.environment.name}: signed messages, or messages for Slack, Teams, PagerDuty or by mail.`}
      act={
        canChange && (
          <Button look="accent" onClick={() => setOpen('new')}>
            New webhook
          </Button>
        )
      }
    >
      <ListedTable
        label="Webhooks"
        columns={columns}
        current={current}
        list={webhooks}
        empty={
          <Empty title="No webhook yet">
            {canChange
              ? 'Add the address of your chat or on-call tool, and send it a test.'
              : 'An admin of this workspace can add one.'}
          </Empty>
        }
      />
      {open === 'new' && (
        <WebhookDialog
          environmentId={place.environment.id}
          onClose={() => setOpen(null)}
          onDone={(created) => {
            setOpen(created !== null && hasSecret(created) ? created : null)
          }}
        />
      )}
      {open !== null && open !== 'new' && <WebhookSecret webhook={open} onClose={() => setOpen(null)} />}
    </SectionPage>
  )
}

export function WebhookSecret({ webhook, onClose }: { webhook: CreatedWebhook; onClose: () => void }) {
  return (
    <ShownOnce
      title="The secret of the webhook"
      note="The receiver checks with it that a message comes from this server (Standard Webhooks)."
      label="Secret"
      text={webhook.secret}
      onClose={onClose}
    />
  )
}
