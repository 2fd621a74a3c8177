import type { CreatedWebhook, Delivery, DeliveryStatus, Webhook } from '@tacho/contract/messages/webhook.ts'
import { DELIVERY_STATUSES } from '@tacho/contract/engine/words.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Button, More } from '../web/ui/button.tsx'
import { State } from '../web/ui/state.tsx'
import { stateWord } from '../web/text/state-styles.ts'
import { Copy } from '../web/ui/copy.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { Fact, Facts, Nothing, Section } from '../web/ui/section.tsx'
import { Choice } from '../web/ui/filters.tsx'
import { number } from '../web/text/format.ts'
import { usePages } from '../web/queries.ts'
import { Refused, NotFound, PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { Confirm } from '../web/ui/form-dialog.tsx'
import { SlackUsers } from './slack-links.tsx'
import { WebhookDialog } from './webhook-dialog.tsx'
import { hasSecret, WebhookState, webhooksQuery } from './webhook.tsx'
import { WebhookSecret } from './webhooks-page.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/webhooks/$webhookId')
const REFRESH_MS = 2_000

export function WebhookPage() {
  const { webhookId, ...names } = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data, error, refetch } = useQuery(webhooksQuery(environmentId))
  useTitle('Webhook')
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  const webhook = data.find(({ id }) => id === webhookId)
  if (!webhook) return <NotFound />
  const params = { environmentId, webhookId }
  return (
    <>
      <header className="pt-5">
        <Link to="/w/$workspace/$environment/settings/webhooks" params={names} className="link text-sm">
          ‹ Webhooks
        </Link>
        <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="min-w-0 text-xl font-semibold break-all">
            <bdi>{webhook.url || 'Damaged address'}</bdi>
          </h1>
          <WebhookState webhook={webhook} />
        </div>
      </header>
      {webhook.disabledReason !== null && (
        <p className="mt-3 rounded-lg bg-red-wash px-3 py-2 text-sm text-red">{webhook.disabledReason}</p>
      )}
      {place.may('admin') && <Acts params={params} webhook={webhook} />}
      <Facts className="mt-4">
        <Fact name="Events">
          <span className="flex flex-wrap gap-x-2 font-mono text-xs leading-5">
            {webhook.events.map((event) => (
              <span key={event}>{event}</span>
            ))}
          </span>
        </Fact>
        <Fact name="Format">{webhook.format}</Fact>
        {webhook.showsInput && <Fact name="Input">Requests for approval show the beginning of it</Fact>}
        {webhook.interactionsUrl !== null && (
          <Fact name="Request URL">
            <span className="flex flex-wrap items-center gap-x-2">
              <span className="font-mono text-xs leading-5 break-all">{webhook.interactionsUrl}</span>
              <Copy text={webhook.interactionsUrl} />
            </span>
            <span className="text-sm text-soft">
              For Interactivity &amp; Shortcuts in the settings of the Slack app.
            </span>
          </Fact>
        )}
        {webhook.description !== '' && (
          <Fact name="Purpose">
            <bdi>{webhook.description}</bdi>
          </Fact>
        )}
        <Fact name="Created">
          <Time at={webhook.createdAt} />
        </Fact>
        {webhook.droppedDeliveries > 0 && (
          <Fact name="Dropped">{number(webhook.droppedDeliveries)} messages, because newer ones waited</Fact>
        )}
      </Facts>
      {webhook.interactionsUrl !== null && place.may('admin') && <SlackUsers params={params} />}
      {!webhook.damaged && <Deliveries params={params} canRedeliver={place.may('admin')} />}
    </>
  )
}

interface Params {
  environmentId: string
  webhookId: string
}

const deliveriesKey = ({ environmentId, webhookId }: Params) => ['deliveries', environmentId, webhookId] as const

function Acts({ params, webhook }: { params: Params; webhook: Webhook }) {
  const names = route.useParams()
  const navigate = useNavigate()
  const [open, setOpen] = useState<'change' | 'rotate' | 'remove' | CreatedWebhook | null>(null)
  const close = () => setOpen(null)
  const test = useMutation({
    mutationFn: () => api.testWebhook({ params }),
  })
  const isDisabled = webhook.disabledAt !== null
  const turn = useMutation({
    mutationFn: () => api.changeWebhook({ params, body: { enabled: isDisabled } }),
  })
  return (
    <div className="mt-3 flex flex-wrap items-center gap-2">
      {!isDisabled && !webhook.damaged && (
        <Button look="accent" busy={test.isPending} onClick={() => test.mutate()}>
          Send a test
        </Button>
      )}
      {!webhook.damaged && (
        <>
          <Button look={isDisabled ? 'accent' : 'plain'} busy={turn.isPending} onClick={() => turn.mutate()}>
            {isDisabled ? 'Enable' : 'Disable'}
          </Button>
          <Button onClick={() => setOpen('change')}>Change…</Button>
          {hasSecret(webhook) && <Button onClick={() => setOpen('rotate')}>New secret…</Button>}
        </>
      )}
      <Button look="quiet" onClick={() => setOpen('remove')}>
        Remove…
      </Button>
      <Refused error={test.error ?? turn.error} className="w-full" />
      {open === 'change' && (
        <WebhookDialog
          environmentId={params.environmentId}
          webhook={webhook}
          onDone={() => {
            close()
          }}
          onClose={close}
        />
      )}
      {open === 'rotate' && (
        <Confirm
          title="Make a new secret?"
          act="New secret"
          run={() => api.rotateWebhookSecret({ params })}
          onDone={setOpen}
          onClose={close}
        >
          For a day, messages carry signatures of both secrets. Give the new one to the receiver within this time.
        </Confirm>
      )}
      {open === 'remove' && (
        <Confirm
          title="Remove this webhook?"
          act="Remove"
          run={async () => {
            await api.removeWebhook({ params })
            await navigate({ to: '/w/$workspace/$environment/settings/webhooks', params: names })
          }}
          onClose={close}
        >
          Its log of deliveries is removed too. Messages that still wait are not sent.
        </Confirm>
      )}
      {open !== null && typeof open === 'object' && <WebhookSecret webhook={open} onClose={close} />}
    </div>
  )
}

function Deliveries({ params, canRedeliver }: { params: Params; canRedeliver: boolean }) {
  const { status } = route.useSearch()
  const navigate = useNavigate()
  const list = usePages<Delivery>({
    queryKey: [...deliveriesKey(params), status],
    read: (cursor, signal) => api.listDeliveries({ params, query: { status, limit: 50, cursor } }, { signal }),
    refreshMs: REFRESH_MS,
  })
  const again = useMutation({
    mutationFn: (deliveryId: string) => api.redeliver({ params: { ...params, deliveryId } }),
  })
  const columns: Column<Delivery>[] = [
    {
      head: 'Event',
      main: true,
      cell: ({ type, error }) => (
        <>
          <span className="block truncate font-mono text-xs leading-5">{type}</span>
          {error !== null && (
            <bdi className="block truncate text-soft" title={error}>
              {error}
            </bdi>
          )}
        </>
      ),
    },
    {
      head: 'Status',
      cell: ({ status: is, responseStatus }) => (
        <span className="flex items-center gap-2">
          <State is={is} />
          {responseStatus !== null && <span className="text-soft">{responseStatus}</span>}
        </span>
      ),
    },
    { head: 'Attempts', right: true, wide: true, cell: ({ attempts }) => number(attempts) },
    { head: 'Happened', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    { head: 'Last attempt', wide: true, cell: ({ lastAttemptAt }) => lastAttemptAt && <Time at={lastAttemptAt} /> },
  ]
  if (canRedeliver) {
    columns.push({
      head: 'Actions',
      right: true,
      cell: ({ id, type, status: is }) =>
        is !== 'PENDING' && (
          <Button
            look="quiet"
            busy={again.isPending && again.variables === id}
            aria-label={`Send again: ${type}`}
            onClick={() => again.mutate(id)}
          >
            Send again
          </Button>
        ),
    })
  }
  return (
    <Section
      title="Deliveries"
      note={
        <Choice
          label="Status"
          all="Any status"
          value={status}
          options={DELIVERY_STATUSES.map((one) => [one, stateWord(one)])}
          onChange={(chosen) =>
            void navigate({
              to: '.',
              search: chosen === '' ? {} : { status: chosen as DeliveryStatus },
              replace: true,
            })
          }
        />
      }
    >
      <Refused error={again.error} className="mb-2" />
      <ListedTable
        label="Deliveries"
        columns={columns}
        list={{ ...list, data: list.data && list.items }}
        empty={
          <Nothing>
            {status === undefined ? 'No message yet. Send a test to see how the receiver answers.' : 'None of these.'}
          </Nothing>
        }
      />
      <More list={list} label="Show older deliveries" />
    </Section>
  )
}
