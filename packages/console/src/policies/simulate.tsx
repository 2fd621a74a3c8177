import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Choice } from '../web/ui/filters.tsx'
import { number } from '../web/text/format.ts'
import { Refused } from '../web/ui/refused.tsx'
import { Section } from '../web/ui/section.tsx'
import type { Draft } from './draft.ts'
import { useSimulation } from './queries.ts'
import { SimulationResult } from './simulation-result.tsx'

const DAYS = [1, 7, LIMITS.simulationDaysMax] as const

interface Props {
  environment: { id: string; name: string }
  draft: Draft
  canSimulate: boolean
}

/** What the draft would have done with the recorded calls. */
export function Simulate({ environment, draft, canSimulate }: Props) {
  const [days, setDays] = useState<number>(7)
  const [simulationId, setSimulationId] = useState<string | null>(null)
  const environmentId = environment.id
  const { data } = useSimulation(environmentId, simulationId)
  const start = useMutation({
    mutationFn: () => {
      const { condition, severity, action, onError } = draft
      const body = { condition, severity, action, onError, days }
      return api.createSimulation({ params: { environmentId }, body })
    },
    onSuccess: ({ id }) => setSimulationId(id),
  })
  const cancel = useMutation({
    mutationFn: (id: string) => api.cancelSimulation({ params: { environmentId, simulationId: id } }),
  })
  const isRunning = data?.status === 'QUEUED' || data?.status === 'RUNNING'
  return (
    <Section title="Simulation" note={`on the tool calls of ${environment.name}`}>
      {canSimulate ? (
        <div className="flex flex-wrap items-center gap-2">
          <Choice
            label="Period"
            value={String(days)}
            options={DAYS.map((count) => [String(count), count === 1 ? 'The last day' : `The last ${count} days`])}
            onChange={(chosen) => setDays(Number(chosen))}
          />
          <Button
            busy={start.isPending || isRunning}
            disabled={draft.condition.trim() === ''}
            onClick={() => start.mutate()}
          >
            Simulate
          </Button>
          {isRunning && (
            <Button look="quiet" onClick={() => cancel.mutate(data.id)}>
              Cancel
            </Button>
          )}
          <Refused error={start.error ?? cancel.error} className="w-full" />
        </div>
      ) : (
        <p className="text-sm text-soft">An admin of this workspace can simulate a policy.</p>
      )}
      <div role="status" className="mt-3 text-sm">
        {data && isRunning && <Progress simulation={data} />}
        {data?.status === 'FAILED' && <p className="text-red">The simulation failed: {data.error}</p>}
        {data?.status === 'CANCELLED' && <p className="text-soft">The simulation was cancelled.</p>}
      </div>
      {data?.result && (
        <>
          {(data.condition !== draft.condition || data.action !== draft.action || data.onError !== draft.onError) && (
            <p className="mb-2 text-sm text-amber">! The draft has changed since this simulation.</p>
          )}
          <SimulationResult result={data.result} />
        </>
      )}
    </Section>
  )
}

function Progress({ simulation: { scanned, total } }: { simulation: Simulation }) {
  return (
    <>
      <progress
        aria-label="Calls examined"
        value={scanned}
        max={total ?? undefined}
        className="h-2 w-full accent-accent-fill"
      />
      <p className="tabular text-soft">
        {number(scanned)}
        {total === null ? '' : ` of ${number(total)}`} calls examined
      </p>
    </>
  )
}
