import { runName } from '../../web/text/format.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { environmentsQuery } from '../../web/queries.ts'
import { Field, SelectField } from '../../web/ui/field.tsx'
import { FormDialog } from '../../web/ui/form-dialog.tsx'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Time } from '../../web/text/times.tsx'
import { RunStatusChip } from '../run-status.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const SHOWN = 8

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
  const [text, setText] = useState('')
  const [other, setOther] = useState<string | null>(null)
  const { data: environments = [place.environment] } = useQuery(environmentsQuery(place.workspace.id))
  const [environmentId, setEnvironmentId] = useState(place.environment.id)
  const q = text.trim()
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ['runs to compare', environmentId, q, agent],
    queryFn: ({ signal }) =>
      api.listOperatorRuns(
        { params: { environmentId }, query: { limit: SHOWN + 1, ...(q === '' ? { agent } : { q }) } },
        { signal },
      ),
    placeholderData: keepPreviousData,
  })
  const others =
    data?.items.filter((run) => environmentId !== place.environment.id || run.runId !== runId).slice(0, SHOWN) ?? []
  // The list may still belong to an earlier text.
  const first = isPlaceholderData ? others.find((run) => run.runId.startsWith(q)) : others[0]
  const chosen = other ?? (q === '' ? null : (first?.runId ?? null))
  return (
    <FormDialog
      title="Compare with another run"
      act="Compare"
      isReady={chosen !== null}
      isBusy={false}
      error={error}
      onSubmit={() => {
        if (chosen === null) return
        onClose()
        const other = environments.find(({ id }) => id === environmentId && id !== place.environment.id)
        const search = { a: runId, b: chosen, ...(other && { bIn: other.name }) }
        void navigate({ to: '/w/$workspace/$environment/compare', params, search })
      }}
      onClose={onClose}
    >
      <Field
        label="Beginning of a run id"
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setOther(null)
        }}
      />
      {environments.length > 1 && (
        <SelectField
          label="In the environment"
          value={environmentId}
          options={environments.map(({ id, name }) => [id, name])}
          onChange={(id) => {
            setEnvironmentId(id)
            setOther(null)
          }}
        />
      )}
      <fieldset className="mt-2 min-w-0">
        <legend className="sr-only">Run</legend>
        {others.map((run) => (
          <label key={run.id} className="flex items-center gap-2.5 border-b border-line py-2 text-sm last:border-0">
            <input
              type="radio"
              name="other"
              checked={run.runId === chosen}
              onChange={() => setOther(run.runId)}
              className="accent-accent-fill"
            />
            <span className="min-w-0 flex-1" title={run.title === null ? run.runId : `${run.title}\n${run.runId}`}>
              <bdi className="block truncate">
                <ShownText text={runName(run)} />
              </bdi>
              {run.title !== null && <bdi className="block truncate font-mono text-xs text-soft">{run.runId}</bdi>}
            </span>
            <RunStatusChip run={run} />
            <span className="text-soft">
              <Time at={run.startedAt} />
            </span>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
