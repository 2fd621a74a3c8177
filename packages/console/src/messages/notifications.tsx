/** Settings for a person's browser notifications and quiet hours. */
import type { NotificationSettings, NotifiedBrowser } from '@tacho/contract/messages/notification.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api } from '../web/api.ts'
import { NotAllowed, switchOff, switchOn, whyNot } from './push.ts'
import { Button } from '../web/ui/button.tsx'
import { Chip } from '../web/ui/chip.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { Refused, isBlocking, Skeleton, Trouble } from '../web/ui/states.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { Time } from '../web/text/times.tsx'
import { Choices, notificationsQuery, QuietHoursPart } from './notification-choices.tsx'
import { programOf } from '../web/text/format.ts'

const route = getRouteApi('/w/$workspace/$environment')

export function NotificationsPart() {
  const { data, error, refetch } = useQuery(notificationsQuery)
  return (
    <Section title="Notifications" className="mt-2" note="Approvals, alerts and issues, on a phone or a desktop">
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton className="h-24" />
      ) : (
        <div className="flex flex-col gap-5">
          <Switch settings={data} own={data.own} />
          {data.browsers.length > 0 && (
            <>
              <Browsers browsers={data.browsers} own={data.own} />
              <Choices choices={data.environments} />
              <QuietHoursPart hours={data.quietHours} />
            </>
          )}
        </div>
      )}
    </Section>
  )
}

interface SwitchProps {
  settings: NotificationSettings
  own: NotifiedBrowser | null
}

function Switch({ settings, own }: SwitchProps) {
  const { place } = route.useRouteContext()
  const fault = whyNot()
  const change = useMutation({
    mutationFn: async () => {
      if (own) return switchOff(own)
      await switchOn(settings.publicKey)
      // If the person has chosen no environment yet, notify about the one on screen.
      if (settings.environments.length > 0) return
      const first = { environmentId: place.environment.id, kinds: ['approvals', 'alerts'], severity: 'LOW' } as const
      await api.changeNotificationSettings({ body: { environments: [{ ...first, kinds: [...first.kinds] }] } })
    },
  })
  if (fault !== null) return <Nothing>{fault}</Nothing>
  return (
    <div>
      <label className="flex min-h-8 cursor-pointer items-center gap-2.5 text-sm font-medium">
        <input
          type="checkbox"
          role="switch"
          checked={own !== null}
          disabled={change.isPending}
          onChange={() => change.mutate()}
          className="size-4 accent-accent"
        />
        Notify this browser
      </label>
      <p className="text-sm text-soft">
        It shows what waits, also while Tacho is closed. It stops when you sign out. The service of the browser that
        carries the messages cannot read them.
      </p>
      {change.error instanceof NotAllowed || isPushFault(change.error) ? (
        <p role="alert" className="mt-1 text-sm text-red">
          {change.error instanceof NotAllowed
            ? 'The browser did not allow notifications.'
            : 'The push service of this browser could not be reached.'}
        </p>
      ) : (
        <Refused error={change.error} className="mt-1" />
      )}
    </div>
  )
}

const isPushFault = (error: unknown): boolean => error instanceof DOMException

function Browsers({ browsers, own }: { browsers: NotifiedBrowser[]; own: NotifiedBrowser | null }) {
  const removal = useMutation({
    mutationFn: async (row: NotifiedBrowser) => {
      if (row.id === own?.id) await switchOff(row)
      else await api.removeNotifiedBrowser({ params: { browserId: row.id } })
    },
  })
  const columns: Column<NotifiedBrowser>[] = [
    {
      head: 'Browser',
      main: true,
      cell: ({ id, userAgent }) => (
        <span className="flex items-center gap-2">
          <bdi className="min-w-0 truncate font-medium" title={userAgent}>
            {programOf(userAgent === '' ? null : userAgent)}
          </bdi>
          {id === own?.id && <Chip>this one</Chip>}
        </span>
      ),
    },
    { head: 'Added', wide: true, cell: ({ addedAt }) => <Time at={addedAt} /> },
    {
      head: 'Last notified',
      cell: ({ notifiedAt }) =>
        notifiedAt === null ? <span className="text-soft">never</span> : <Time at={notifiedAt} />,
    },
    {
      head: 'Actions',
      right: true,
      cell: (row) => (
        <Button
          look="quiet"
          busy={removal.isPending && removal.variables.id === row.id}
          aria-label={`Remove ${programOf(row.userAgent)}`}
          onClick={() => removal.mutate(row)}
        >
          Remove
        </Button>
      ),
    },
  ]
  const list = { data: browsers, error: null, refetch: () => Promise.resolve() }
  return (
    <div>
      <Refused error={removal.error} className="mb-2" />
      <ListedTable label="Notified browsers" columns={columns} list={list} empty={null} />
    </div>
  )
}
