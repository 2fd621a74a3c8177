/** Labels of an environment's tools, as its configuration defines them, and the recorded tools without labels. */
import type { ToolLabel, ToolLabels } from '@tacho/contract/policies/tool-labels.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { counted, number } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Button } from '../../web/ui/button.tsx'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { useDraftState } from '../../web/ui/draft-state.ts'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { areValid, draftsOf, LabelEditor, rulesOf } from './label-editor.tsx'
import { toolLabelsQuery } from './queries.ts'

const COLUMNS: readonly Column<ToolLabel>[] = [
  {
    head: 'Tool',
    main: true,
    cell: ({ tool }) => (
      <bdi className="font-mono">
        <ShownText text={tool} />
      </bdi>
    ),
  },
  { head: 'Output', cell: ({ output = [] }) => output.join(', ') },
  { head: 'Does', cell: ({ does = [] }) => does.join(', ') },
  {
    head: 'Where',
    wide: true,
    cell: ({ when }) =>
      when && (
        <code className="block max-w-md truncate font-mono text-xs" title={when}>
          {when}
        </code>
      ),
  },
]

interface Props {
  environment: { id: string; name: string }
  canEdit: boolean
}

export function ToolLabelList({ environment, canEdit }: Props) {
  const [isEditing, setEditing] = useState(false)
  const { data, error } = useQuery(toolLabelsQuery(environment.id))
  const { labels = [], coverage } = data ?? {}
  return (
    <Section
      title={`Labels of tools in ${environment.name}`}
      error={error && !data ? error : null}
      note={
        coverage && coverage.tools > 0 && `${number(coverage.labelled)} of ${counted(coverage.tools, 'recorded tool')}`
      }
    >
      {data && isEditing && <LabelForm environment={environment} labels={data} onClose={() => setEditing(false)} />}
      {data && !isEditing && labels.length === 0 && (
        <Nothing>
          No tool has labels, which conditions on the past of a run read. Give them here, or with tacho.yaml:{' '}
          <code className="font-mono">tacho labels set tacho.yaml</code>
        </Nothing>
      )}
      {!isEditing && labels.length > 0 && (
        <DataTable label="Labels of tools" columns={COLUMNS} items={labels} keyOf={(rule) => JSON.stringify(rule)} />
      )}
      {coverage && (isEditing || labels.length > 0) && coverage.unlabelled.length > 0 && (
        <p className="pt-1.5 text-sm text-soft [overflow-wrap:anywhere]">
          Without labels: <ShownText text={coverage.unlabelled.join(', ')} />
        </p>
      )}
      {data && canEdit && !isEditing && (
        <Button className="mt-2" onClick={() => setEditing(true)}>
          Edit labels
        </Button>
      )}
    </Section>
  )
}

interface FormProps {
  environment: { id: string; name: string }
  labels: ToolLabels
  onClose: () => void
}

/** Replaces all rules, unless somebody changed them after this form was opened. */
function LabelForm({ environment: { id, name }, labels, onClose }: FormProps) {
  const cache = useQueryClient()
  const initial = { rules: draftsOf(labels.labels), since: labels.changedAt ?? '' }
  const written = useDraftState(`labels ${id}`, initial)
  const { rules, since } = written.value
  const close = () => {
    written.forget()
    onClose()
  }
  const save = useMutation({
    mutationFn: async () => {
      const newest = await api.readToolLabels({ params: { environmentId: id } })
      if ((newest.changedAt ?? '') !== since) return { stored: newest, isSaved: false }
      const body = { labels: rulesOf(rules) }
      return { stored: await api.changeToolLabels({ params: { environmentId: id }, body }), isSaved: true }
    },
    onSuccess: ({ stored, isSaved }) => {
      cache.setQueryData(toolLabelsQuery(id).queryKey, stored)
      if (isSaved) close()
    },
  })
  return (
    <form
      aria-label={`Labels of tools in ${name}`}
      onSubmit={(event) => {
        event.preventDefault()
        if (areValid(rules) && !save.isPending) save.mutate()
      }}
    >
      <p className="max-w-3xl text-sm text-soft">
        Common labels: <code>untrusted</code> (strangers can write the output), <code>private</code>, <code>ours</code>,{' '}
        <code>external</code>, <code>destructive</code>, <code>money</code>. Agents get a change within a second, and
        policies in force read it.
      </p>
      <LabelEditor
        rules={rules}
        onChange={(changed) => written.set({ rules: changed, since })}
        tools={labels.coverage.unlabelled}
      />
      <div className="mt-3 flex flex-wrap items-center gap-2">
        <Button type="submit" look="accent" busy={save.isPending} disabled={!areValid(rules)}>
          Save labels
        </Button>
        <Button look="quiet" onClick={close}>
          Cancel
        </Button>
        {written.wasBack && <span className="text-sm text-soft">This is what you wrote before.</span>}
        {since !== (labels.changedAt ?? '') && !save.isPending && (
          <p role="alert" className="w-full text-sm text-amber">
            ! {labels.changedBy ?? 'Somebody'} changed these labels while you wrote. Nothing of yours is saved.{' '}
            <button
              type="button"
              className="link"
              onClick={() => written.set({ rules, since: labels.changedAt ?? '' })}
            >
              Keep mine
            </button>{' '}
            or{' '}
            <button type="button" className="link" onClick={written.forget}>
              take theirs
            </button>
          </p>
        )}
        <Refused error={save.error} className="w-full" />
      </div>
    </form>
  )
}
