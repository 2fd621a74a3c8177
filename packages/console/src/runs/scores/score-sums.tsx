import type { ScoreSum } from '@tacho/contract/runs/score.ts'
import { meanText } from '@tacho/contract/runs/run-text.ts'
import { useQuery } from '@tanstack/react-query'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { counted, number } from '../../web/text/format.ts'
import { hourTimes } from '../../web/address.ts'
import { Section } from '../../web/ui/section.tsx'
import { scoreSumsQuery, type ScoreGroup } from './queries.ts'

interface Props {
  environmentId: string
  window: { from: string; to: string }
  by: ScoreGroup
  /** Name of the scores to show; absent: all. */
  name?: string
}

interface Row extends ScoreSum {
  key: string
  group: string
}

interface WindowProps extends Omit<Props, 'window'> {
  window: { from: number; to: number }
}

export function ScoreSums({ window, ...props }: WindowProps) {
  return <ScoreSumsTable {...props} window={hourTimes(window)} />
}

/** Sums of a period's scores, by agent, prompt version or author. Renders nothing if there are none. */
export function ScoreSumsTable({ environmentId, window, by, name: only }: Props) {
  const { data, error } = useQuery(scoreSumsQuery(environmentId, { ...window, by }))
  const rows = (data?.items ?? []).flatMap(({ key, name, scores }) =>
    scores
      .filter((sum) => only === undefined || sum.name === only)
      .map((sum): Row => ({ ...sum, key, group: name || groupOfKey(key) })),
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

/** The name of a group. The empty client name stands for clients that name no author. */
const groupOfKey = (key: string): string => (key === 'client ' ? 'a client' : key)

const HEADS: Record<ScoreGroup, string> = { agent: 'Agent', promptVersion: 'Prompt version', author: 'Author' }

const columns = (by: Props['by']): Column<Row>[] => [
  { head: HEADS[by], main: true, cell: ({ group }) => <bdi>{group}</bdi> },
  { head: 'Score', cell: ({ name }) => <bdi>{name}</bdi> },
  { head: by === 'author' ? 'Scores' : 'Runs', right: true, cell: ({ runs }) => number(runs) },
  { head: 'Mean', right: true, cell: meanText },
  { head: 'Categories', wide: true, cell: (sum) => <bdi>{categories(sum)}</bdi> },
]

const MOST_WORDS = 3

const categories = ({ categories: all }: ScoreSum): string =>
  all
    .slice(0, MOST_WORDS)
    .map(({ value, runs }) => `${value} ${number(runs)}`)
    .join(', ')

/** The score of several runs, in a few words. */
export function scoreSumText(sum: ScoreSum): string {
  return `${sum.name} ${sum.mean === null ? categories(sum) : `${meanText(sum)} (${counted(sum.runs, 'run')})`}`
}
