/** Five alerts for an environment without alerts. They only need a webhook, which is created with them. */
import type { NewAlert } from '@tacho/contract/messages/alert.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { CheckList, Field, SelectField } from '../web/ui/field.tsx'
import { withLabels } from '../web/ui/field-labels.ts'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { alertsQuery } from './alert-state.tsx'
import { ALERT_EVENTS, eventsOf, webhooksQuery } from './webhook.tsx'

const COMMON = {
  agentId: null,
  windowMinutes: 60,
  holdMinutes: 5,
  leastRuns: 1,
  against: null,
  period: 'month',
} as const

const STARTERS: readonly (NewAlert & { why: string })[] = [
  {
    ...COMMON,
    name: 'Many runs fail',
    kind: 'error_rate',
    threshold: 20,
    leastRuns: 5,
    why: 'more than 20 % of at least 5 runs of an hour',
  },
  {
    ...COMMON,
    name: 'Cost doubled',
    kind: 'cost',
    threshold: 200,
    windowMinutes: 1_440,
    against: 'last_week',
    leastRuns: 5,
    why: 'a day costs more than twice the same day of last week',
  },
  { ...COMMON, name: 'A request waits', kind: 'approval_waiting', threshold: 10, why: 'for longer than 10 minutes' },
  {
    ...COMMON,
    name: 'Runs stall',
    kind: 'stalled_runs',
    threshold: 0,
    why: 'no event for 15 minutes, in the last hour',
  },
  { ...COMMON, name: 'Budget of the month', kind: 'budget', threshold: 100, why: 'at 50, 80 and 100 % of $100' },
]

/** Formats for people. Signed JSON is left out: it needs a secret, which only the page of webhooks shows. */
const TARGETS = [
  ['slack', 'Slack'],
  ['teams', 'Microsoft Teams'],
  ['pagerduty', 'PagerDuty'],
  ['mail', 'Mail'],
] as const
const ADDRESSES: Record<string, { label: string; placeholder: string }> = {
  mail: { label: 'E-mail address of a member', placeholder: '' },
  slack: { label: 'Incoming webhook', placeholder: 'https://hooks.slack.com/services/…' },
  teams: { label: 'Address of the workflow', placeholder: 'https://' },
  pagerduty: { label: 'Address', placeholder: 'https://events.pagerduty.com/v2/enqueue?routing_key=…' },
}

export function StarterAlerts({ environmentId, onClose }: { environmentId: string; onClose: () => void }) {
  const cache = useQueryClient()
  const webhooks = useQuery(webhooksQuery(environmentId))
  const [chosen, setChosen] = useState<readonly string[]>(STARTERS.map(({ name }) => name))
  const [format, setFormat] = useState<(typeof TARGETS)[number][0]>('slack')
  const [address, setAddress] = useState('')
  const alertWebhooks = webhooks.data?.filter(
    ({ disabledAt, events }) => disabledAt === null && events.includes('alert.firing'),
  )
  const needsTarget = alertWebhooks !== undefined && alertWebhooks.length === 0
  const { label = '', placeholder = '' } = ADDRESSES[format] ?? {}
  const create = useMutation({
    async mutationFn() {
      const params = { environmentId }
      if (needsTarget) {
        const url = format === 'mail' ? `mailto:${address.trim().replace(/^mailto:/, '')}` : address.trim()
        const kinds = STARTERS.filter(({ name }) => chosen.includes(name)).map(({ kind }) => kind)
        const events = ALERT_EVENTS.filter((event) => kinds.some((kind) => eventsOf(kind).includes(event)))
        await api.createWebhook({
          params,
          body: { url, format, events, description: 'Alerts', showsInput: false },
        })
      }
      const before = new Set(cache.getQueryData(alertsQuery(environmentId).queryKey)?.map(({ name }) => name))
      for (const { why: _, ...body } of STARTERS) {
        if (chosen.includes(body.name) && !before.has(body.name)) await api.createAlert({ params, body })
      }
    },
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title="Alerts to start with"
      act={`Create ${chosen.length}`}
      isReady={chosen.length > 0 && alertWebhooks !== undefined && (!needsTarget || address.trim() !== '')}
      isBusy={create.isPending}
      error={withLabels(create.error, { url: label })}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        {needsTarget && (
          <div className="grid gap-4 sm:grid-cols-[9rem_minmax(0,1fr)]">
            <SelectField
              label="Tell by"
              value={format}
              options={TARGETS}
              onChange={(to) => setFormat(to as typeof format)}
            />
            <Field
              label={label}
              type={format === 'mail' ? 'text' : 'url'}
              placeholder={placeholder}
              maxLength={LIMITS.webhookUrlChars}
              value={address}
              onChange={(event) => setAddress(event.target.value)}
              autoComplete="off"
              autoFocus
              required
            />
          </div>
        )}
        {alertWebhooks !== undefined && alertWebhooks.length > 0 && (
          <p className="text-sm text-soft">The webhooks of this environment that take alerts send them.</p>
        )}
        <CheckList
          legend="Tell when"
          options={STARTERS.map(({ name, why }) => [name, why] as const)}
          chosen={chosen}
          onChange={setChosen}
        />
        <p className="text-sm text-soft">Each can be changed later: its amount, its time, its agent.</p>
      </div>
    </FormDialog>
  )
}
