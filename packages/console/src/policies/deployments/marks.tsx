/** Deployments as marks on a time axis, and as a table: they show what changed when a curve did. */
import type { DeploymentChange } from '@tacho/contract/policies/deployment.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo, type ReactNode } from 'react'
import { api } from '../../web/api.ts'
import { counted, exact, minuteOfDay } from '../../web/text/format.ts'
import { hourTimes, type HourWindow } from '../../web/address.ts'

const route = getRouteApi('/w/$workspace/$environment')
/** Maximum number of marks: the newest ones of the period. */
const MARKS = 200
/** Marks that are closer than this share of the axis are drawn as one. */
const SEPARATE = 0.012

/** Changes at one position of the axis. */
export interface Mark {
  /** Time in milliseconds. */
  at: number
  /** Oldest first. */
  changes: readonly DeploymentChange[]
}

/** Reads the publications of a period, oldest first. */
export function useMarks(environmentId: string, window: Pick<HourWindow, 'from' | 'to'> | undefined): readonly Mark[] {
  const { from, to } = window === undefined ? { from: '', to: '' } : hourTimes(window)
  const { data } = useQuery({
    queryKey: ['deployments', environmentId, 'marks', from, to],
    queryFn: ({ signal }) =>
      api.listDeploymentChanges({ params: { environmentId }, query: { from, to, limit: MARKS } }, { signal }),
    enabled: window !== undefined,
    staleTime: 60_000,
  })
  const items = data?.items
  return useMemo(
    () => (items === undefined || items.length === 0 || !window ? NONE : marksOf(items, window)),
    [items, window],
  )
}

const NONE: readonly Mark[] = []

export function marksOf(changes: readonly DeploymentChange[], { from, to }: { from: number; to: number }): Mark[] {
  const marks: { at: number; changes: DeploymentChange[] }[] = []
  for (const change of changes.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))) {
    const at = Date.parse(change.at)
    const last = marks.at(-1)
    if (last !== undefined && at - last.at < SEPARATE * (to - from)) last.changes.push(change)
    else marks.push({ at, changes: [change] })
  }
  return marks
}

/** Describes a change: `prompt refunds: version 2, before version 1`. */
export function changeText({ kind, name, from, to }: DeploymentChange): string {
  const before = from === null ? '' : `, before version ${from}`
  return `${kind} ${name}: ${to === null ? 'removed' : `version ${to}`}${before}`
}

interface RowProps {
  marks: readonly Mark[]
  /** Position of a time, from 0 at the left end of the row to 1; null: not visible. */
  placeOf: (time: number) => number | null
}

/** A row of marks above a chart. Each shows its changes on hover or focus. */
export function MarkRow({ marks, placeOf }: RowProps) {
  const shown = marks.flatMap((mark) => {
    const place = placeOf(mark.at)
    return place === null ? [] : [{ mark, place }]
  })
  if (shown.length === 0) return null
  return (
    <ul aria-label="Deployments" className="relative h-5">
      {shown.map(({ mark, place }) => (
        <li key={mark.at} className="absolute top-0 h-5" style={{ left: `${100 * place}%` }}>
          <MarkLink mark={mark} isRight={place > 0.5} />
        </li>
      ))}
    </ul>
  )
}

function MarkLink({ mark: { at, changes }, isRight }: { mark: Mark; isRight: boolean }) {
  const [first] = changes
  if (first === undefined) return null
  const lines = changes.map(changeText)
  return (
    <ItemLink of={first} label={`${exact(at)}, ${lines.join('; ')}`} className="group block -translate-x-1/2 px-1 py-1">
      <span aria-hidden className="block size-2.5 rotate-45 bg-accent" />
      <span
        aria-hidden
        className={`pointer-events-none absolute top-5 z-10 hidden w-max max-w-72 rounded-md border border-line bg-page px-2 py-1 text-sm text-ink shadow-md group-hover:block group-focus-visible:block ${isRight ? 'right-0' : 'left-0'}`}
      >
        <span className="tabular block text-soft">{exact(at)}</span>
        {lines.map((line, index) => (
          <bdi key={index} className="block">
            {line}
          </bdi>
        ))}
      </span>
    </ItemLink>
  )
}

interface ItemLinkProps {
  of: DeploymentChange
  className: string
  label?: string
  children: ReactNode
}

/** Link to the versions of the deployed item. */
function ItemLink({ of: { kind, id }, label, ...linkProps }: ItemLinkProps) {
  const params = route.useParams()
  const shared = {
    ...linkProps,
    search: { show: 'versions' as const },
    ...(label !== undefined && { 'aria-label': label }),
  }
  return kind === 'prompt' ? (
    <Link to="/w/$workspace/$environment/prompts/$promptId" params={{ ...params, promptId: id }} {...shared} />
  ) : (
    <Link to="/w/$workspace/$environment/policies/$policyId" params={{ ...params, policyId: id }} {...shared} />
  )
}

/** Draws marks on a plot: a line for each, and the row of marks above. */
export function plotMarks(marks: readonly Mark[]) {
  return {
    lines: marks.map(({ at }) => at),
    above: (placeOf: RowProps['placeOf']) => <MarkRow marks={marks} placeOf={placeOf} />,
  }
}

/** The changes as a table, initially closed. */
export function MarkTable({ marks }: { marks: readonly Mark[] }) {
  const changes = marks.flatMap((mark) => mark.changes)
  if (changes.length === 0) return null
  return (
    <details className="mt-1 mb-3 text-sm">
      <summary className="w-fit cursor-pointer text-soft hover:text-ink">
        <span aria-hidden className="mr-1.5 inline-block size-2 rotate-45 bg-accent" />
        {counted(changes.length, 'deployment')} in this time
        {changes.length === MARKS && ', the newest ones'}
      </summary>
      <table className="mt-1 w-full max-w-3xl">
        <caption className="sr-only">Deployments in this time</caption>
        <thead className="sr-only">
          <tr>
            <th scope="col">When</th>
            <th scope="col">What</th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={`${change.publication} ${change.kind} ${change.id}`} className="border-b border-line align-top">
              <td className="tabular py-1 pr-3 whitespace-nowrap text-soft">{minuteOfDay(Date.parse(change.at))}</td>
              <td className="py-1 pr-3">
                <ItemLink of={change} className="link">
                  <bdi>{changeText(change)}</bdi>
                </ItemLink>
              </td>
              <td className="py-1 text-soft">
                <bdi>{change.by}</bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}
