/** Finds a run by the beginning of its id, or offers the newest ones. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api } from '../../web/api.ts'
import { runName } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Time } from '../../web/text/times.tsx'
import { Field } from '../../web/ui/field.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { RunStatusChip } from '../run-status.tsx'

const SHOWN = 8

interface Props {
  environmentId: string
  /** Runs of this agent are offered first. */
  agent?: string | undefined
  /** Id of a run that cannot be chosen. */
  except?: string | undefined
  onChange: (runId: string | null) => void
}

export function RunChoice({ environmentId, agent, except, onChange }: Props) {
  const [text, setText] = useState('')
  const [other, setOther] = useState<string | null>(null)
  useEffect(() => setOther(null), [environmentId])
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
  const others = data?.items.filter((run) => run.runId !== except).slice(0, SHOWN) ?? []
  // The list may still belong to an earlier text, so check the id.
  const first = isPlaceholderData ? others.find((run) => run.runId.startsWith(q)) : others[0]
  const chosen = other ?? (q === '' ? null : (first?.runId ?? null))
  useEffect(() => onChange(chosen), [chosen, onChange])
  return (
    <>
      <Field
        label="Beginning of a run id"
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setOther(null)
        }}
      />
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
      {data?.items.length === 0 && <p className="mt-2 text-sm text-soft">No run here begins so.</p>}
      <Refused error={error} className="mt-2" />
    </>
  )
}
