import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet, useLocation } from '@tanstack/react-router'
import { Fragment } from 'react'
import { meQuery } from './queries.ts'
import { useActiveInSight } from './ui/browser.ts'
import { SETTINGS } from './shell/pages.ts'

const route = getRouteApi('/w/$workspace/$environment/settings')

/** The frame around every page of the settings. */
export function SettingsPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data: me } = useQuery(meQuery)
  const bar = useActiveInSight(useLocation().pathname)
  const who = { place, installation: me?.installation === true }
  return (
    <div className="mx-auto grid w-full max-w-6xl grid-cols-[minmax(0,1fr)] gap-x-10 px-4 pb-16 sm:px-5 lg:grid-cols-[11rem_minmax(0,1fr)]">
      <nav
        ref={bar}
        aria-label="Settings"
        className="flex gap-0.5 overflow-x-auto pt-4 lg:sticky lg:top-12 lg:flex-col lg:self-start"
      >
        {SETTINGS.map(({ of, pages }, index) => {
          const shown = pages.filter((page) => !('for' in page) || page.for(who))
          if (shown.length === 0) return null
          return (
            <Fragment key={index}>
              <bdi className="hidden truncate px-2.5 pt-3 pb-1 text-xs text-soft first:pt-0 lg:block">{of(who)}</bdi>
              {shown.map(({ name, to }) => (
                <Link
                  key={to}
                  to={to}
                  params={params}
                  activeOptions={{ includeSearch: false }}
                  className="rounded-md px-2.5 py-1.5 text-sm whitespace-nowrap text-soft hover:bg-hover hover:text-ink data-[status=active]:bg-hover data-[status=active]:font-medium data-[status=active]:text-ink"
                >
                  {name}
                </Link>
              ))}
            </Fragment>
          )
        })}
      </nav>
      <div className="min-w-0">
        <Outlet />
      </div>
    </div>
  )
}
