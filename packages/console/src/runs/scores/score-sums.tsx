import type { ScoreSum } from '@tacho/contract/runs/score.ts'
import { meanText } from '@tacho/contract/runs/run-text.ts'
import { useQuery } from '@tanstack/react-query'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { counted, number } from '../../web/text/format.ts'
import { hourTimes } from '../../web/address.ts'
import { Section } from '../../web/ui/section.tsx'
import { scoreSumsQuery } from './queries.ts'

interface Props {
  environmentId: string
  window: { from: number; to: number }
  by: 'agent' | 'promptVersion'
}

interface Row extends ScoreSum {
  key: string
  group: string
}

/** What was scored in a time, by agent or prompt version. Nothing, where nothing was. */
export function ScoreSums({ environmentId, window, by }: Props) {
  const of = { ...hourTimes(window), by }
  const { data, error } = useQuery(scoreSumsQuery(environmentId, of))
  const rows = (data?.items ?? []).flatMap(({ key, name, scores }) =>
    scores.map((sum): Row => ({ ...sum, key, group: name ?? key })),
  )
  if (!error && rows.length === 0) return null
  return (
    <Section
      title="Scores"
      error={error}
      note={data?.isCut ? 'not all: the latest, and the names with most runs' : undefined}
    >
      <DataTable label="Scores" columns={columns(by)} items={rows} keyOf={({ key, name }) => `${key} ${name}`} />
    </Section>
  )
}

const columns = (by: Props['by']): Column<Row>[] => [
  { head: by === 'agent' ? 'Agent' : 'Prompt version', main: true, cell: ({ group }) => <bdi>{group}</bdi> },
  { head: 'Score', cell: ({ name }) => <bdi>{name}</bdi> },
  { head: 'Runs', right: true, cell: ({ runs }) => number(runs) },
  { head: 'Mean', right: true, cell: meanText },
  { head: 'Categories', wide: true, cell: (sum) => <bdi>{categories(sum)}</bdi> },
]

const MOST_WORDS = 3

const categories = ({ categories: all }: ScoreSum): string =>
  all
    .slice(0, MOST_WORDS)
    .map(({ value, runs }) => `${value} ${number(runs)}`)
    .join(', ')

/** One score of several runs, in a few words. */
export function scoreSumText(sum: ScoreSum): string {
  return `${sum.name} ${sum.mean === null ? categories(sum) : `${meanText(sum)} (${counted(sum.runs, 'run')})`}`
}
