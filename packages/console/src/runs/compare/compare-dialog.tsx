import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { environmentsQuery } from '../../web/queries.ts'
import { SelectField } from '../../web/ui/field.tsx'
import { FormDialog } from '../../web/ui/form-dialog.tsx'
import { RunChoice } from './run-choice.tsx'

const route = getRouteApi('/w/$workspace/$environment')

interface Props {
  runId: string
  /** Other runs of this agent are offered first. */
  agent: string
  onClose: () => void
}

/** Asks for the run to compare this one with. */
export function CompareDialog({ runId, agent, onClose }: Props) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [chosen, setChosen] = useState<string | null>(null)
  const { data: environments = [place.environment] } = useQuery(environmentsQuery(place.workspace.id))
  const [environmentId, setEnvironmentId] = useState(place.environment.id)
  const isHere = environmentId === place.environment.id
  return (
    <FormDialog
      title="Compare with another run"
      act="Compare"
      isReady={chosen !== null}
      isBusy={false}
      error={null}
      onSubmit={() => {
        if (chosen === null) return
        onClose()
        const other = environments.find(({ id }) => id === environmentId && !isHere)
        const search = { a: runId, b: chosen, ...(other && { bIn: other.name }) }
        void navigate({ to: '/w/$workspace/$environment/compare', params, search })
      }}
      onClose={onClose}
    >
      {environments.length > 1 && (
        <SelectField
          label="In the environment"
          value={environmentId}
          options={environments.map(({ id, name }) => [id, name])}
          onChange={setEnvironmentId}
        />
      )}
      <RunChoice environmentId={environmentId} agent={agent} except={isHere ? runId : undefined} onChange={setChosen} />
    </FormDialog>
  )
}
