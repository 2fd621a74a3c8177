import { Link, type LinkProps, getRouteApi, useLocation } from '@tanstack/react-router'
import { readRange } from '../address.ts'
import { useActiveInSight } from './browser.ts'

type Options<Value> = readonly (readonly [value: Value, word: string])[]

type Props<Value extends string> = { label: string; className?: string } & (
  | { options: Options<Value>; value: Value; onChange: (value: Value) => void }
  /** Each tab is a separate page. */
  | {
      options: Options<NonNullable<LinkProps['to']>>
      params: NonNullable<LinkProps['params']>
      search?: NonNullable<LinkProps['search']>
    }
)

const TAB =
  'tabular -mb-px border-b-2 border-transparent py-1.5 text-sm whitespace-nowrap text-soft hover:text-ink data-[status=active]:border-accent data-[status=active]:font-medium data-[status=active]:text-ink'

/** Tabs for parts of a page, or for several pages about one item. */
export function Tabs<Value extends string>(props: Props<Value>) {
  const { label, className = '' } = props
  const isPages = 'params' in props
  const row = useActiveInSight<HTMLDivElement>(isPages ? '' : props.value)
  return (
    <div
      ref={row}
      role={isPages ? 'navigation' : 'group'}
      aria-label={label}
      className={`mt-2 flex gap-4 overflow-x-auto border-b border-line ${className}`}
    >
      {isPages
        ? props.options.map(([to, word]) => (
            <Link
              key={to}
              to={to}
              params={props.params}
              {...(props.search && { search: props.search })}
              activeOptions={{ includeSearch: false }}
              className={TAB}
            >
              {word}
            </Link>
          ))
        : props.options.map(([value, word]) => (
            <button
              key={value}
              type="button"
              aria-pressed={value === props.value}
              data-status={value === props.value ? 'active' : undefined}
              onClick={() => props.onChange(value)}
              className={TAB}
            >
              {word}
            </button>
          ))}
    </div>
  )
}

const route = getRouteApi('/w/$workspace/$environment')

const PAGES = [
  ['/w/$workspace/$environment/runs', 'All'],
  ['/w/$workspace/$environment/sessions', 'By session'],
  ['/w/$workspace/$environment/search', 'Search'],
  ['/w/$workspace/$environment/judge', 'Judge'],
] as const

/** Tabs of the runs: as a list, by session, or by a search in payloads. */
export function RunsTabs() {
  return <Tabs label="Runs" options={PAGES} params={route.useParams()} search={readRange(useLocation().search)} />
}
