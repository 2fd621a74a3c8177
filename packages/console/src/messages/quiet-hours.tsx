import type { QuietHours } from '@tacho/contract/messages/notification.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Field, SelectField } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { Refused } from '../web/ui/refused.tsx'
import { notificationsQuery } from './notifications-query.ts'

const MINUTES = 60

export function QuietHoursPart({ hours }: { hours: QuietHours | null }) {
  const cache = useQueryClient()
  const [isOpen, setOpen] = useState(false)
  const removal = useMutation({
    mutationFn: () => api.changeNotificationSettings({ body: { quietHours: null } }),
    onSettled: () => cache.invalidateQueries(notificationsQuery),
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
  const cache = useQueryClient()
  const [from, setFrom] = useState(timeOf(hours?.fromMinute ?? 22 * MINUTES))
  const [to, setTo] = useState(timeOf(hours?.toMinute ?? 7 * MINUTES))
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone
  const [timeZone, setTimeZone] = useState(hours?.timeZone ?? own)
  const [exceptCritical, setExceptCritical] = useState(hours?.exceptCritical ?? true)
  const save = useMutation({
    mutationFn: () => {
      const quietHours = { fromMinute: minuteOf(from), toMinute: minuteOf(to), timeZone, exceptCritical }
      return api.changeNotificationSettings({ body: { quietHours } })
    },
    onSuccess: onClose,
    onSettled: () => cache.invalidateQueries(notificationsQuery),
  })
  const zones = [...new Set([own, timeZone, 'UTC', ...Intl.supportedValuesOf('timeZone')])]
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
        <p className="text-sm text-soft">What still waits when they end is told then. What expired is not.</p>
      </div>
    </FormDialog>
  )
}

/** As a time input writes it. */
const timeOf = (minute: number): string =>
  `${String(Math.floor(minute / MINUTES)).padStart(2, '0')}:${String(minute % MINUTES).padStart(2, '0')}`

function minuteOf(time: string): number {
  const [hour = 0, minute = 0] = time.split(':').map(Number)
  return hour * MINUTES + minute
}
