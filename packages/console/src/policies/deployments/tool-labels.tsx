/** What the tools of an environment are and do, as its configuration says, and which recorded tools have no labels. */
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { counted, number } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'

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
        <code className="block truncate font-mono text-xs" title={when}>
          {when}
        </code>
      ),
  },
]

export function ToolLabelList({ environment: { id, name } }: { environment: { id: string; name: string } }) {
  const { data, error } = useQuery({
    queryKey: ['tool labels', id],
    queryFn: ({ signal }) => api.readToolLabels({ params: { environmentId: id } }, { signal }),
  })
  const { labels = [], coverage } = data ?? {}
  return (
    <Section
      title={`Labels of tools in ${name}`}
      error={error && !data ? error : null}
      note={
        coverage && coverage.tools > 0 && `${number(coverage.labelled)} of ${counted(coverage.tools, 'recorded tool')}`
      }
    >
      {data && labels.length === 0 && (
        <Nothing>
          No tool has labels, which conditions on the past of a run read. Set them with tacho.yaml:{' '}
          <code className="font-mono">tacho labels set tacho.yaml</code>
        </Nothing>
      )}
      {labels.length > 0 && (
        <DataTable label="Labels of tools" columns={COLUMNS} items={labels} keyOf={(rule) => JSON.stringify(rule)} />
      )}
      {labels.length > 0 && coverage && coverage.unlabelled.length > 0 && (
        <p className="pt-1.5 text-sm text-soft [overflow-wrap:anywhere]">
          Without labels: <ShownText text={coverage.unlabelled.join(', ')} />
        </p>
      )}
    </Section>
  )
}
