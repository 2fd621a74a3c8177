import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet, useLocation } from '@tanstack/react-router'
import { Fragment } from 'react'
import { meQuery, type Place } from './queries.ts'
import { useActiveInSight } from './ui/browser.ts'

const route = getRouteApi('/w/$workspace/$environment/settings')

/** What surrounds every page of the settings. */
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
        {SECTIONS.map(({ of, pages }, index) => {
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

/** The pages below Settings, in order. */

interface Who {
  place: Place
  /** Owner of the whole installation. */
  installation: boolean
}

/** By what they are about, in order. A page that is not for everyone says whom it is for. */
const SECTIONS = [
  {
    of: ({ place }: Who) => place.environment.name,
    pages: [
      { name: 'API keys', to: '/w/$workspace/$environment/settings/api-keys' },
      { name: 'Webhooks', to: '/w/$workspace/$environment/settings/webhooks' },
      { name: 'Alerts', to: '/w/$workspace/$environment/settings/alerts' },
      { name: 'Data', to: '/w/$workspace/$environment/settings/data' },
    ],
  },
  {
    of: ({ place }: Who) => place.workspace.name,
    pages: [
      { name: 'People', to: '/w/$workspace/$environment/settings/people' },
      { name: 'Environments', to: '/w/$workspace/$environment/settings/environments' },
      { name: 'Prices', to: '/w/$workspace/$environment/settings/prices' },
      {
        name: 'Operator tokens',
        to: '/w/$workspace/$environment/settings/tokens',
        for: ({ place }: Who) => place.may('owner'),
      },
      { name: 'Audit log', to: '/w/$workspace/$environment/settings/audit' },
    ],
  },
  {
    of: () => 'Installation',
    pages: [
      {
        name: 'Doctor',
        to: '/w/$workspace/$environment/settings/doctor',
        for: ({ installation }: Who) => installation,
      },
    ],
  },
  {
    of: () => 'You',
    pages: [{ name: 'Your account', to: '/w/$workspace/$environment/settings/account' }],
  },
] as const
