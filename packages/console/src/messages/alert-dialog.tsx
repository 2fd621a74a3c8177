import type { Alert, AlertKind, NewAlert } from '@tacho/contract/messages/alert.ts'
import { ALERT_KINDS } from '@tacho/contract/engine/words.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { withLabels } from '../web/ui/field-labels.ts'
import { NameField, FormDialog } from '../web/ui/form-dialog.tsx'
import { Field, SelectField } from '../web/ui/field.tsx'
import { canCompare, hasLeastRuns, KINDS } from './alert-rule.ts'
import { agentNamesQuery } from './alert-state.tsx'

const WINDOWS = [
  ['15', '15 minutes'],
  ['60', 'an hour'],
  ['360', '6 hours'],
  ['1440', 'a day'],
  ['10080', 'a week'],
] as const
const MEASURES = [
  ['', 'The value itself'],
  ['last_week', 'Against the same hours of last week'],
] as const
const PERIODS = [
  ['month', 'Each month'],
  ['day', 'Each day'],
] as const

interface Props {
  environmentId: string
  /** Null: a new alert. */
  alert: Alert | null
  onClose: () => void
}

interface Draft {
  name: string
  kind: AlertKind
  threshold: string
  agentId: string
  windowMinutes: string
  holdMinutes: string
  leastRuns: string
  /** Value to compare with. Empty: none. */
  against: '' | 'last_week'
  period: 'month' | 'day'
}

const FIRST: Draft = {
  name: '',
  kind: 'error_rate',
  threshold: '20',
  agentId: '',
  windowMinutes: '60',
  holdMinutes: '5',
  leastRuns: '5',
  against: '',
  period: 'month',
}

export function AlertDialog({ environmentId, alert, onClose }: Props) {
  const [draft, setDraft] = useState<Draft>(alert === null ? FIRST : draftOf(alert))
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change })
  const { data: agents } = useQuery(agentNamesQuery(environmentId))
  const { name, kind, threshold } = draft
  const { hasWindow, note } = KINDS[kind]
  const isCompared = canCompare(kind) && draft.against !== ''
  const label = isCompared ? 'Percent of last week' : KINDS[kind].label
  const missing =
    name.trim() === '' ? 'Give it a name first.' : label !== null && threshold === '' ? `Set “${label}” first.` : null
  const save = useMutation({
    mutationFn: () => {
      const body = bodyOf(draft)
      if (alert === null) return api.createAlert({ params: { environmentId }, body })
      const { kind: _, ...change } = body
      return api.changeAlert({ params: { environmentId, alertId: alert.id }, body: change })
    },
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title={alert === null ? 'New alert' : 'Change this alert'}
      act={alert === null ? 'Create alert' : 'Change alert'}
      isReady={missing === null}
      isBusy={save.isPending}
      error={withLabels(save.error, {
        name: 'Name',
        threshold: label ?? 'Kind',
        against: 'Measures',
        agentId: 'Agent',
      })}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <NameField
          hint="Stands in the message, such as “Refunds fail”"
          value={name}
          onChange={(to) => set({ name: to })}
        />
        {alert === null ? (
          <SelectField
            label="Kind"
            hint={note}
            value={kind}
            options={ALERT_KINDS.map((one) => [one, KINDS[one].name])}
            onChange={(to) =>
              set({
                kind: to as AlertKind,
                threshold: '',
                holdMinutes: to === 'share_failures' ? '0' : '5',
                leastRuns: to === 'error_rate' || to === 'share_failures' ? '5' : '1',
                against: '',
              })
            }
          />
        ) : (
          <p className="text-sm text-soft">{note}</p>
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          {canCompare(kind) && (
            <SelectField
              label="Measures"
              value={draft.against}
              options={MEASURES}
              onChange={(to) => set({ against: to as Draft['against'], threshold: to === '' ? '' : '200' })}
            />
          )}
          {label !== null && (
            <Field
              label={label}
              type="number"
              inputMode="decimal"
              min={kind === 'budget' ? 0.01 : 0}
              max={(kind === 'error_rate' && !isCompared) || kind === 'share_failures' ? 100 : 1e9}
              step="any"
              required
              value={threshold}
              onChange={(event) => set({ threshold: event.target.value })}
            />
          )}
          {hasWindow && (
            <SelectField
              label="Looks back"
              value={draft.windowMinutes}
              options={withOwn(WINDOWS, draft.windowMinutes)}
              onChange={(to) => set({ windowMinutes: to })}
            />
          )}
          {kind === 'budget' ? (
            <SelectField
              label="For"
              value={draft.period}
              options={PERIODS}
              onChange={(to) => set({ period: to as Draft['period'] })}
            />
          ) : (
            <Field
              label="Holds for, minutes"
              type="number"
              inputMode="numeric"
              min={0}
              max={1_440}
              step={1}
              required
              value={draft.holdMinutes}
              onChange={(event) => set({ holdMinutes: event.target.value })}
            />
          )}
          {hasLeastRuns(kind) && (
            <Field
              label="Least ended runs"
              type="number"
              inputMode="numeric"
              min={1}
              max={1_000_000}
              step={1}
              required
              value={draft.leastRuns}
              onChange={(event) => set({ leastRuns: event.target.value })}
            />
          )}
          <SelectField
            label="Agent"
            value={draft.agentId}
            options={withOwn([['', 'Every agent'], ...(agents ?? [])], draft.agentId)}
            onChange={(to) => set({ agentId: to })}
          />
        </div>
        {missing !== null && <p className="text-sm text-soft">{missing}</p>}
      </div>
    </FormDialog>
  )
}

function draftOf({ name, kind, agentId, period, against, ...alert }: Alert): Draft {
  return {
    name,
    kind,
    threshold: String(alert.threshold),
    agentId: agentId ?? '',
    windowMinutes: String(alert.windowMinutes),
    holdMinutes: String(alert.holdMinutes),
    leastRuns: String(alert.leastRuns),
    against: against ?? '',
    period,
  }
}

type Options = readonly (readonly [value: string, word: string])[]

/** Adds an option for a value that was set elsewhere. */
function withOwn(options: Options, value: string): Options {
  return options.some(([one]) => one === value) ? options : [...options, [value, value]]
}

function bodyOf({
  name,
  kind,
  threshold,
  agentId,
  windowMinutes,
  holdMinutes,
  leastRuns,
  against,
  period,
}: Draft): NewAlert {
  return {
    name: name.trim(),
    kind,
    threshold: Number(threshold),
    agentId: agentId === '' ? null : agentId,
    windowMinutes: Number(windowMinutes),
    holdMinutes: Number(holdMinutes),
    leastRuns: Number(leastRuns),
    against: against === '' ? null : against,
    period,
  }
}
