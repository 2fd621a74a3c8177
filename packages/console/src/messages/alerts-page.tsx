import type { Alert } from '@tacho/contract/messages/alert.ts'
import type { CreatedWebhook } from '@tacho/contract/messages/webhook.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Confirm } from '../web/ui/form-dialog.tsx'
import { ListedTable, type Column } from '../web/ui/data-table.tsx'
import { SectionPage } from '../web/ui/section.tsx'
import { ALERT_EVENTS, hasSecret, webhooksQuery } from './webhook.tsx'
import { WebhookDialog } from './webhook-dialog.tsx'
import { WebhookSecret } from './webhooks-page.tsx'
import { Button } from '../web/ui/button.tsx'
import { counted } from '../web/text/format.ts'
import { useKeys } from '../web/ui/keys.ts'
import { Refused, Empty } from '../web/ui/states.tsx'
import { RowMenu } from '../web/ui/overlay.tsx'
import { Time } from '../web/text/times.tsx'
import { AlertDialog } from './alert-dialog.tsx'
import { StarterAlerts } from './starter-alerts.tsx'
import { ruleText, unpricedNote, valueText } from './alert-rule.ts'
import { AlertState, BudgetBar, agentNamesQuery, alertsQuery } from './alert-state.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/alerts')

type Open =
  | { is: 'new' | 'starters' | 'webhook' }
  | { is: 'secret'; of: CreatedWebhook }
  | { is: 'change' | 'remove'; alert: Alert }

export function AlertsPage() {
  const names = route.useParams()
  const { place } = route.useRouteContext()
  const params = { environmentId: place.environment.id }
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const alerts = useQuery(alertsQuery(params.environmentId))
  const { data: agents } = useQuery({
    ...agentNamesQuery(params.environmentId),
    enabled: alerts.data?.some(({ agentId }) => agentId !== null) === true,
  })
  const canChange = place.may('admin')
  const test = useMutation({
    mutationFn: ({ id }: Alert) => api.testAlert({ params: { ...params, alertId: id } }),
  })
  useKeys(canChange ? { n: () => setOpen({ is: 'new' }) } : {})

  const columns: Column<Alert>[] = [
    { head: 'State', cell: (alert) => <AlertState alert={alert} /> },
    {
      head: 'Alert',
      main: true,
      cell: (alert) =>
        alert.damaged ? (
          <span className="text-soft">Delete it and create it again</span>
        ) : (
          <>
            <bdi className="block truncate font-medium max-sm:whitespace-normal" title={alert.name}>
              {alert.name}
            </bdi>
            <span className="block truncate text-soft max-sm:whitespace-normal" title={ruleText(alert)}>
              {alert.kind === 'budget' ? 'Budget: ' : 'Fires if '}
              {ruleText(alert)}
              {alert.agentId !== null && (
                <>
                  {' · '}
                  <bdi>{agents?.get(alert.agentId) ?? 'one agent'}</bdi>
                </>
              )}
            </span>
          </>
        ),
    },
    {
      head: 'Now',
      wide: true,
      cell: (alert) =>
        alert.damaged ? null : alert.kind === 'budget' ? (
          <BudgetBar alert={alert} />
        ) : (
          <span className="tabular" title={unpricedNote(alert)}>
            {valueText(alert)}
            {alert.comparison !== null && (
              <span className="block max-w-80 text-xs whitespace-normal text-soft">{alert.comparison}</span>
            )}
          </span>
        ),
    },
    { head: 'Since', wide: true, cell: (alert) => <Time at={alert.since} /> },
  ]
  if (canChange) {
    columns.push({
      head: 'Actions',
      right: true,
      cell: (alert) => (
        <RowMenu
          name={alert.damaged ? 'the damaged alert' : alert.name}
          acts={[
            ...(alert.damaged
              ? []
              : [
                  { word: 'Change…', act: () => setOpen({ is: 'change' as const, alert }) },
                  { word: 'Send a test', act: () => test.mutate(alert) },
                ]),
            { word: 'Delete…', act: () => setOpen({ is: 'remove' as const, alert }) },
          ]}
        />
      ),
    })
  }
  return (
    <SectionPage
      title="Alerts"
      note={
        <>
          The server checks each rule once a minute and tells the{' '}
          <Link to="/w/$workspace/$environment/settings/webhooks" params={names} className="link underline">
            webhooks
          </Link>{' '}
          of {place.environment.name} when it fires and when it is over. A budget tells at 50, 80 and 100 %.
        </>
      }
      act={
        canChange && (
          <Button look="accent" onClick={() => setOpen({ is: 'new' })}>
            New alert
          </Button>
        )
      }
    >
      <NotSent environmentId={params.environmentId} onAdd={canChange ? () => setOpen({ is: 'webhook' }) : null} />
      <Refused error={test.error} />
      <p role="status" className="text-sm text-soft">
        {test.data && testText(test.data.webhooks)}
      </p>
      <ListedTable
        label="Alerts"
        columns={columns}
        list={alerts}
        empty={
          <Empty
            title={`${place.environment.name} has no alert yet`}
            action={canChange && <Button onClick={() => setOpen({ is: 'starters' })}>Five to start with…</Button>}
          >
            {canChange
              ? 'Create one for failing runs, a high cost, requests that wait, or a budget for the month.'
              : 'An admin of this workspace can create one.'}
          </Empty>
        }
      />
      {open?.is === 'starters' && <StarterAlerts environmentId={params.environmentId} onClose={close} />}
      {open?.is === 'new' && <AlertDialog environmentId={params.environmentId} alert={null} onClose={close} />}
      {open?.is === 'webhook' && (
        <WebhookDialog
          environmentId={params.environmentId}
          events={ALERT_EVENTS}
          onDone={(created) => {
            setOpen(created !== null && hasSecret(created) ? { is: 'secret', of: created } : null)
          }}
          onClose={close}
        />
      )}
      {open?.is === 'secret' && <WebhookSecret webhook={open.of} onClose={close} />}
      {open?.is === 'change' && <AlertDialog environmentId={params.environmentId} alert={open.alert} onClose={close} />}
      {open?.is === 'remove' && (
        <Confirm
          title={open.alert.damaged ? 'Delete the damaged alert?' : `Delete ${open.alert.name}?`}
          act="Delete"
          run={() => api.removeAlert({ params: { ...params, alertId: open.alert.id } })}
          onClose={close}
        >
          It is no longer checked, and sends no message when it is resolved. No run is deleted.
        </Confirm>
      )}
    </SectionPage>
  )
}

function testText(webhooks: number): string {
  return webhooks === 0
    ? 'No webhook subscribes to this event, so no message was sent.'
    : `A message, marked as a test, is on its way to ${counted(webhooks, 'webhook')}.`
}

/** Warns if no webhook sends an alert, because people rely on it. */
function NotSent({ environmentId, onAdd }: { environmentId: string; onAdd: (() => void) | null }) {
  const names = route.useParams()
  const { data } = useQuery(webhooksQuery(environmentId))
  const isSent = data?.some(({ disabledAt, events }) => disabledAt === null && events.includes('alert.firing')) ?? true
  if (isSent) return null
  return (
    <p className="mb-3 text-sm text-amber">
      ! No webhook sends alerts: only people who chose them in{' '}
      <Link to="/w/$workspace/$environment/settings/account" params={names} className="link underline">
        their notifications
      </Link>{' '}
      are told.{' '}
      {onAdd && (
        <button type="button" onClick={onAdd} className="link underline">
          Add a webhook
        </button>
      )}
    </p>
  )
}
