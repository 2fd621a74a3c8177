import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { api } from '../../web/api.ts'
import { Button } from '../../web/ui/button.tsx'
import { useKeys } from '../../web/ui/keys.ts'
import { Refused } from '../../web/ui/states.tsx'
import { mostAlike } from './alike-runs.ts'

const route = getRouteApi('/w/$workspace/$environment')
/** Among the newest good ones, the one with the most similar question says more. */
const LOOKED_AT = 50

/** Compares a run that went wrong with a completed run of its agent before it: the one that was asked the most alike. */
export function GoodRun({ run }: { run: OperatorRun }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const compare = useMutation({
    mutationFn: async () => {
      const { agentId, agent, startedAt, title } = run
      const query = { agent: agentId ?? agent.name, status: 'COMPLETED', to: startedAt, limit: LOOKED_AT } as const
      const { items } = await api.listOperatorRuns({ params: { environmentId: place.environment.id }, query })
      return mostAlike(title, items)
    },
    onSuccess: (good) =>
      good && navigate({ to: '/w/$workspace/$environment/compare', params, search: { a: good.runId, b: run.runId } }),
  })
  useKeys({ X: { name: 'Compare with the last good run', act: () => compare.mutate() } })
  return (
    <>
      <Button
        look="quiet"
        title="Compare with the last good run of this agent; key: X"
        busy={compare.isPending}
        onClick={() => compare.mutate()}
      >
        {/* One text: two would have the gap of a button between them. */}
        <span>
          <span className="max-sm:hidden">Compare with the </span>last good run
        </span>
      </Button>
      {compare.data === null && <span className="text-sm text-soft">No run of this agent completed before.</span>}
      <Refused error={compare.error} />
    </>
  )
}
