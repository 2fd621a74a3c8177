import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { useQuery } from '@tanstack/react-query'
import { Author } from '../../web/ui/chip.tsx'
import { DamagedChip } from '../../web/ui/state.tsx'
import { Diff } from '../../web/text/diff.tsx'
import { Choice } from '../../web/ui/filters.tsx'
import { More } from '../../web/ui/button.tsx'
import { Refused, Skeleton } from '../../web/ui/states.tsx'
import { Section, Nothing } from '../../web/ui/section.tsx'
import { Time } from '../../web/text/times.tsx'

interface Version {
  version: string
  author: string
  importedAt: string | null
  note: string | null
  createdAt: string
  damaged?: true
}

export const DAMAGED_VERSION = 'Damaged in the store: write another version'

interface Props {
  list: {
    items: Version[]
    hasNextPage: boolean
    isFetchingNextPage: boolean
    fetchNextPage: () => Promise<unknown>
  }
  from: string
  to: string
  onCompare: (change: { from: number } | { to: number }) => void
  queryKey: readonly unknown[]
  readDiff: (query: { from: string; to: string }, signal: AbortSignal) => Promise<VersionDiff>
}

/** The versions of a prompt or policy, and the differences between two of them. */
export function VersionHistory({ list, from, to, onCompare, queryKey, readDiff }: Props) {
  const isDamaged = list.items.some(({ version, damaged }) => damaged && (version === from || version === to))
  const { data, error } = useQuery({
    enabled: list.items.length > 0 && !isDamaged,
    queryKey: [...queryKey, 'diff', from, to],
    queryFn: ({ signal }) => readDiff({ from, to }, signal),
    staleTime: Infinity,
  })
  const options = list.items.map(({ version }) => [version, `Version ${version}`] as const)
  return (
    <>
      <Section
        title="Differences"
        note={
          <span className="flex items-center gap-1.5">
            <Choice
              label="From"
              value={from}
              options={options}
              onChange={(chosen) => onCompare({ from: Number(chosen) })}
            />
            →
            <Choice label="To" value={to} options={options} onChange={(chosen) => onCompare({ to: Number(chosen) })} />
          </span>
        }
      >
        {isDamaged ? (
          <Nothing>The text of a damaged version is not shown.</Nothing>
        ) : error ? (
          <Refused error={error} />
        ) : data ? (
          <Diff diff={data} />
        ) : (
          <Skeleton className="h-24" />
        )}
      </Section>
      <Section title="Versions">
        <ol>
          {list.items.map(({ version, author, note, createdAt, importedAt, damaged }) => (
            <li key={version} className="flex flex-wrap gap-x-3 border-b border-line py-1.5 text-sm last:border-0">
              <span className="w-20 shrink-0 font-medium">Version {version}</span>
              {damaged && <DamagedChip note={DAMAGED_VERSION} />}
              {/* On a phone below the author: beside it, each line would have room for one word. */}
              <span dir="auto" className="min-w-0 flex-1 text-soft max-sm:order-last max-sm:basis-full">
                {note ?? 'no note'}
              </span>
              <span className="shrink-0 text-soft max-sm:ml-auto">
                <Author name={author} importedAt={importedAt} />, <Time at={createdAt} />
              </span>
            </li>
          ))}
        </ol>
        <More list={list} label="Show older versions" />
      </Section>
    </>
  )
}
