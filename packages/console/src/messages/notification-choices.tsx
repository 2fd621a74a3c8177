/** Settings for a person's browser notifications and quiet hours. */
import { useMutation, useQueries, useQuery, queryOptions } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NotificationChoice, NotificationKind, QuietHours } from '@tacho/contract/messages/notification.ts'
import type { Severity } from '@tacho/contract/policies/runtime-config.ts'
import { NOTIFICATION_KINDS, SEVERITIES } from '@tacho/contract/engine/words.ts'
import { api } from '../web/api.ts'
import { environmentsQuery, workspacesQuery } from '../web/queries.ts'
import { Refused } from '../web/ui/states.tsx'
import { Button } from '../web/ui/button.tsx'
import { Field, SelectField } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { ownRow } from './push.ts'

const route = getRouteApi('/w/$workspace/$environment')

const FROM: Record<Severity, string> = {
  LOW: 'of any severity',
  MEDIUM: 'MEDIUM and above',
  HIGH: 'HIGH and above',
  CRITICAL: 'CRITICAL only',
}

type Wish = Omit<NotificationChoice, 'workspaceId'>

/** The environments of this workspace, and those in other workspaces that the person has chosen. */
export function Choices({ choices }: { choices: NotificationChoice[] }) {
  const { place } = route.useRouteContext()
  const { data: workspaces = [] } = useQuery(workspacesQuery)
  const shown = workspaces.filter(
    ({ id }) => id === place.workspace.id || choices.some(({ workspaceId }) => workspaceId === id),
  )
  const lists = useQueries({ queries: shown.map(({ id }) => environmentsQuery(id)) })
  // Show a click at once, until the server's reply replaces it.
  const [wished, setWished] = useState<Wish[] | null>(null)
  const save = useMutation({
    mutationFn: (environments: Wish[]) => api.changeNotificationSettings({ body: { environments } }),
    onSettled: () => setWished(null),
  })
  const current: Wish[] =
    wished ?? choices.map(({ environmentId, kinds, severity }) => ({ environmentId, kinds, severity }))
  const isFull = current.length >= LIMITS.notifiedEnvironments

  function change(environmentId: string, kinds: NotificationKind[], severity: Severity): void {
    const others = current.filter((choice) => choice.environmentId !== environmentId)
    const environmentChoice = kinds.length > 0 ? [{ environmentId, kinds, severity }] : []
    setWished([...others, ...environmentChoice])
    save.mutate([...others, ...environmentChoice])
  }

  return (
    <div>
      <h3 className="text-sm font-medium">Tell me about</h3>
      <Refused error={save.error} className="mt-1" />
      <ul className="mt-1 divide-y divide-line">
        {shown.flatMap((workspace, at) =>
          (lists[at]?.data ?? [])
            .filter(({ id }) => workspace.id === place.workspace.id || current.some((one) => one.environmentId === id))
            .map(({ id, name }) => {
              const choice = current.find(({ environmentId }) => environmentId === id)
              const where = shown.length > 1 ? `${workspace.name} / ${name}` : name
              return (
                <li key={id} className="flex flex-wrap items-center gap-x-5 gap-y-1.5 py-2 text-sm">
                  <bdi className="w-44 min-w-0 truncate font-medium">{where}</bdi>
                  <fieldset className="flex gap-4" disabled={save.isPending || (choice === undefined && isFull)}>
                    <legend className="sr-only">{where}</legend>
                    {NOTIFICATION_KINDS.map((kind) => {
                      const kinds = choice?.kinds ?? []
                      const isOn = kinds.includes(kind)
                      const next = isOn ? kinds.filter((one) => one !== kind) : [...kinds, kind]
                      return (
                        <label key={kind} className="flex cursor-pointer items-center gap-1.5 py-1">
                          <input
                            type="checkbox"
                            checked={isOn}
                            onChange={() => change(id, next, choice?.severity ?? 'LOW')}
                            className="accent-accent"
                          />
                          {kind}
                        </label>
                      )
                    })}
                  </fieldset>
                  {choice && (
                    <select
                      aria-label={`Severity in ${where}`}
                      value={choice.severity}
                      disabled={save.isPending}
                      onChange={(event) => change(id, choice.kinds, event.target.value as Severity)}
                      className="field h-8"
                    >
                      {SEVERITIES.map((severity) => (
                        <option key={severity} value={severity}>
                          {FROM[severity]}
                        </option>
                      ))}
                    </select>
                  )}
                </li>
              )
            }),
        )}
      </ul>
    </div>
  )
}

const MINUTES = 60

export function QuietHoursPart({ hours }: { hours: QuietHours | null }) {
  const [isOpen, setOpen] = useState(false)
  const removal = useMutation({
    mutationFn: () => api.changeNotificationSettings({ body: { quietHours: null } }),
  })
  return (
    <div>
      <h3 className="text-sm font-medium">Quiet hours</h3>
      <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1.5 text-sm">
        <p>
          {hours === null
            ? 'None: you are told at any time.'
            : `${timeOf(hours.fromMinute)} to ${timeOf(hours.toMinute)}, ${hours.timeZone}${hours.exceptCritical ? ', except for what is CRITICAL' : ''}`}
        </p>
        <Button onClick={() => setOpen(true)}>{hours === null ? 'Set…' : 'Change…'}</Button>
        {hours !== null && (
          <Button look="quiet" busy={removal.isPending} onClick={() => removal.mutate()}>
            Remove
          </Button>
        )}
      </div>
      <Refused error={removal.error} className="mt-1" />
      {isOpen && <QuietHoursDialog hours={hours} onClose={() => setOpen(false)} />}
    </div>
  )
}

function QuietHoursDialog({ hours, onClose }: { hours: QuietHours | null; onClose: () => void }) {
  const [from, setFrom] = useState(timeOf(hours?.fromMinute ?? 22 * MINUTES))
  const [to, setTo] = useState(timeOf(hours?.toMinute ?? 7 * MINUTES))
  const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const [timeZone, setTimeZone] = useState(hours?.timeZone ?? browserZone)
  const [exceptCritical, setExceptCritical] = useState(hours?.exceptCritical ?? true)
  const save = useMutation({
    mutationFn: () => {
      const quietHours = { fromMinute: minuteOf(from), toMinute: minuteOf(to), timeZone, exceptCritical }
      return api.changeNotificationSettings({ body: { quietHours } })
    },
    onSuccess: onClose,
  })
  const zones = [...new Set([browserZone, timeZone, 'UTC', ...Intl.supportedValuesOf('timeZone')])]
  return (
    <FormDialog
      title="Quiet hours"
      act="Save"
      isReady={from !== '' && to !== '' && from !== to}
      isBusy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <div className="grid grid-cols-2 gap-3">
          <Field
            label="From"
            type="time"
            required
            autoFocus
            value={from}
            onChange={(event) => setFrom(event.target.value)}
          />
          <Field label="To" type="time" required value={to} onChange={(event) => setTo(event.target.value)} />
        </div>
        <SelectField
          label="Time zone"
          value={timeZone}
          options={zones.map((zone) => [zone, zone.replaceAll('_', ' ')])}
          onChange={setTimeZone}
        />
        <label className="flex cursor-pointer items-baseline gap-2.5 text-sm">
          <input
            type="checkbox"
            checked={exceptCritical}
            onChange={() => setExceptCritical(!exceptCritical)}
            className="accent-accent"
          />
          Tell what is CRITICAL anyway
        </label>
        <p className="text-sm text-soft">
          When quiet hours end, you are notified of what still waits, and not of what has expired.
        </p>
      </div>
    </FormDialog>
  )
}

/** A time in the form of a time input. */
const timeOf = (minute: number): string =>
  `${String(Math.floor(minute / MINUTES)).padStart(2, '0')}:${String(minute % MINUTES).padStart(2, '0')}`

function minuteOf(time: string): number {
  const [hour = 0, minute = 0] = time.split(':').map(Number)
  return hour * MINUTES + minute
}

/** `own`: the entry of this browser. */
export const notificationsQuery = queryOptions({
  queryKey: ['notifications'],
  queryFn: async () => {
    const settings = await api.readNotificationSettings()
    return { ...settings, own: await ownRow(settings.browsers) }
  },
})
