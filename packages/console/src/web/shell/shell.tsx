/** The frame around every page of an environment: the place, the links, and the keys that work everywhere. */
import { getRouteApi, Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState } from 'react'
import { usePendingCount, WaitingApprovals } from '../../approvals/waiting-count.tsx'
import { rememberPlace } from '../home.ts'
import { useActiveInSight } from '../ui/browser.ts'
import { useKeys } from '../ui/keys.ts'
import type { Range } from '../address.ts'
import { Logo } from '../../people/panel.tsx'
import { StopsLine } from '../../policies/deployments/stops-line.tsx'
import { AccountMenu } from './account-menu.tsx'
import { KeysDialog } from './keys-dialog.tsx'
import { useCarriedRange, withRange, HEADER_PAGES, PAGES } from './pages.ts'
import { Palette } from './palette.tsx'
import { PlaceMenu } from './place-menu.tsx'
import { FreshnessLine } from './freshness-line.tsx'
import { useFreshness } from '../freshness.ts'

const route = getRouteApi('/w/$workspace/$environment')
const SessionOver = lazy(async () => ({ default: (await import('../../people/session-over.tsx')).SessionOver }))

export function Shell() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [open, setOpen] = useState<'palette' | 'keys' | null>(null)
  const close = () => setOpen(null)
  const range = useCarriedRange()
  const { freshness, check } = useFreshness()

  useEffect(() => rememberPlace(params), [params])
  useEffect(renewNotifications, [])
  const tabs = useActiveInSight(useLocation().pathname)
  useKeys({
    'mod+k': () => setOpen('palette'),
    '?': () => setOpen('keys'),
    ...Object.fromEntries(
      PAGES.map((page) => [`g ${page.key}`, () => void navigate({ ...withRange(page, range), params })]),
    ),
  })

  return (
    <div className="flex min-h-dvh flex-col" data-stale={freshness.state === 'stale' || undefined}>
      <a
        href="#content"
        className="absolute top-1 left-1 z-30 -translate-y-20 rounded-md bg-accent-fill px-3 py-1.5 text-sm text-on-accent focus:translate-y-0"
      >
        Skip to the content
      </a>
      <header className="short:static sticky top-0 z-20 border-b border-line bg-page print:hidden">
        <div className="flex h-12 items-center gap-2 px-3 sm:gap-3 sm:px-4">
          <Link to="/w/$workspace/$environment" params={params} aria-label="Overview" className="rounded-md p-1">
            <Logo />
          </Link>
          <PlaceMenu place={place} />
          <nav aria-label="Pages" className="ml-1 hidden items-center gap-0.5 xl:flex">
            <PageLinks range={range} />
          </nav>
          <div className="ml-auto flex items-center gap-1.5">
            <button
              type="button"
              onClick={() => setOpen('palette')}
              className="flex h-8 items-center gap-2 rounded-md border border-line px-2.5 text-sm text-soft hover:bg-hover"
            >
              <span>Go to…</span>
              <kbd className="hidden font-sans text-xs sm:inline">{isMac() ? '⌘K' : 'Ctrl K'}</kbd>
            </button>
            <AccountMenu onKeys={() => setOpen('keys')} />
          </div>
        </div>
        <nav ref={tabs} aria-label="Pages" className="flex gap-0.5 overflow-x-auto px-2 pb-1.5 xl:hidden">
          <PageLinks range={range} />
        </nav>
      </header>
      <FreshnessLine freshness={freshness} />
      <StopsLine environmentId={place.environment.id} />
      <main id="content" tabIndex={-1} className="flex min-h-0 flex-1 flex-col outline-none">
        <Outlet />
      </main>
      {freshness.state === 'signed_out' ? (
        <Suspense>
          <SessionOver since={freshness.since} onSignedIn={check} />
        </Suspense>
      ) : (
        // Its stream ends with the session, so mount it again for a new session.
        <WaitingApprovals />
      )}
      {open === 'palette' && <Palette range={range} onClose={close} />}
      {open === 'keys' && <KeysDialog onClose={close} />}
    </div>
  )
}

/**
 * Renews the subscription, because a browser's notifications belong to its latest session. Browsers without
 * notifications do not load the code.
 */
function renewNotifications(): void {
  if (!('Notification' in window) || Notification.permission !== 'granted') return
  void import('../../messages/push.ts').then(({ renew }) => renew())
}

/** Pages that belong to a page in the header, but whose address is not below it. */
const BELOW = /^\/w\/[^/]+\/[^/]+\/(?:(sessions|search|compare|judge)|(new-policy)|(new-prompt))(?:\/|$)/

function PageLinks({ range }: { range: Range }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const waiting = usePendingCount(place.environment.id)
  const [, runs, policies, prompts] = BELOW.exec(useLocation().pathname) ?? []
  const above = runs ? 'Runs' : policies ? 'Policies' : prompts && 'Prompts'
  return HEADER_PAGES.map(({ name, ...page }) => (
    <Link
      key={name}
      {...withRange(page, range)}
      params={params}
      activeOptions={{ exact: page.to === '/w/$workspace/$environment', includeSearch: false }}
      className={`rounded-md px-2.5 py-1 text-sm whitespace-nowrap text-soft hover:bg-hover hover:text-ink data-[status=active]:bg-hover data-[status=active]:font-medium data-[status=active]:text-ink${name === above ? ' bg-hover font-medium text-ink' : ''}`}
    >
      {name}
      {name === 'Approvals' && waiting.count > 0 && (
        <span className="tabular ml-1.5 rounded-full bg-amber-wash px-1.5 text-xs font-semibold text-amber">
          {waiting.text}
          <span className="sr-only"> waiting</span>
        </span>
      )}
    </Link>
  ))
}

function isMac(): boolean {
  return navigator.userAgent.includes('Mac')
}
