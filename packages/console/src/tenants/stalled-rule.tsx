import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import { queryOptions, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import type { Place } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Fact, Facts, Section } from '../web/ui/section.tsx'
import { Field, RadioCards } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { counted } from '../web/text/format.ts'
import { Skeleton, Trouble, isBlocking } from '../web/ui/states.tsx'

const stalledRuleQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['stalled rule', environmentId],
    queryFn: () => api.readStalledRule({ params: { environmentId } }),
  })

/** A section of the settings: when running runs of this environment count as stalled, and what happens then. */
export function StalledRuleSection({ place }: { place: Place }) {
  const environmentId = place.environment.id
  const { data, error, refetch } = useQuery(stalledRuleQuery(environmentId))
  const [isOpen, setOpen] = useState(false)
  return (
    <Section title="Stalled runs" className="mt-8" note={`In ${place.environment.name}`}>
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton className="h-16" />
      ) : (
        <>
          {data.damaged && (
            <p className="text-sm text-red">! The stored rule is damaged, and no run is closed. Set it again.</p>
          )}
          <Facts>
            <Fact name="Stalled">after {counted(data.idleMinutes, 'minute')} without an event</Fact>
            <Fact name="Then">
              {THEN[data.closeAs ?? 'OPEN'].name}
              {data.closeAs !== null &&
                data.closeAfterMinutes !== data.idleMinutes &&
                `, after ${counted(data.closeAfterMinutes, 'minute')}`}
            </Fact>
          </Facts>
          {place.may('admin') && (
            <Button className="mt-3" onClick={() => setOpen(true)}>
              Change…
            </Button>
          )}
          {isOpen && <StalledRuleDialog place={place} rule={data} onClose={() => setOpen(false)} />}
        </>
      )}
    </Section>
  )
}

type Then = 'OPEN' | NonNullable<StalledRule['closeAs']>

const THEN: Record<Then, { name: string; note: string }> = {
  OPEN: { name: 'They stay open, marked as stalled', note: 'An agent may work for an hour without an event.' },
  FAILED: {
    name: 'They are closed as failed',
    note: 'They say that their process went silent. The next event opens them again.',
  },
  CANCELLED: {
    name: 'They are closed as cancelled',
    note: 'They say that their process went silent. The next event opens them again.',
  },
}
const THENS = Object.keys(THEN) as Then[]

function StalledRuleDialog({ place, rule, onClose }: { place: Place; rule: StalledRule; onClose: () => void }) {
  const environmentId = place.environment.id
  const [minutes, setMinutes] = useState(String(rule.idleMinutes))
  const [then, setThen] = useState<Then>(rule.closeAs ?? 'OPEN')
  const save = useMutation({
    mutationFn: () =>
      api.changeStalledRule({
        params: { environmentId },
        body: { idleMinutes: Number(minutes), closeAs: then === 'OPEN' ? null : then },
      }),
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title={`Stalled runs in ${place.environment.name}`}
      act="Save"
      isReady={minutes !== ''}
      isBusy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <Field
          label="Minutes without an event"
          hint="A run that waits for an approval is never stalled."
          type="number"
          inputMode="numeric"
          min={LIMITS.stalledMinutesMin}
          max={LIMITS.stalledMinutesMax}
          step={1}
          required
          autoFocus
          value={minutes}
          onChange={(event) => setMinutes(event.target.value)}
        />
        <RadioCards
          legend="Then"
          value={then}
          options={THENS.map((value) => ({ value, ...THEN[value] }))}
          onChange={setThen}
        />
      </div>
    </FormDialog>
  )
}
