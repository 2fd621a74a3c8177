import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useRouter } from '@tanstack/react-router'
import { useState } from 'react'
import { operator } from '../api.ts'
import { meQuery } from '../queries.ts'
import { Button } from '../ui/button.tsx'
import { forgetDrafts } from '../ui/draft-state.ts'
import { areKeysOn } from '../ui/keys.ts'
import { MenuItem, Popover } from '../ui/overlay.tsx'
import { chooseTheme, readTheme, THEMES, type Theme } from '../ui/browser.ts'

const route = getRouteApi('/w/$workspace/$environment')
const NAMES: Record<Theme, string> = { system: 'System', light: 'Light', dark: 'Dark' }

export function AccountMenu({ onKeys }: { onKeys: () => void }) {
  const { data: me } = useQuery(meQuery)
  const router = useRouter()
  const params = route.useParams()
  const cache = useQueryClient()
  const [theme, setTheme] = useState(readTheme)

  async function signOut(): Promise<void> {
    await operator.signOut()
    forgetDrafts()
    // Leave the page first: without a session, its queries would fail.
    await router.navigate({ to: '/sign-in' })
    cache.clear()
  }

  const label = me ? `Account of ${me.name}` : 'Account'
  const face = (
    <>
      <Initials name={me?.name ?? ''} />
      <span className="sr-only">{label}</span>
    </>
  )
  return (
    <Popover label={label} face={face} buttonClassName="block rounded-full" panelClassName="w-64 p-1">
      <div className="px-2.5 pt-1.5 pb-2">
        <p className="font-medium">{me?.name}</p>
        {me?.email && me.email !== me.name && <p className="text-sm text-soft">{me.email}</p>}
      </div>
      <fieldset className="border-t border-line px-2.5 py-2">
        <legend className="sr-only">Colours</legend>
        <div className="grid grid-cols-3 gap-1">
          {THEMES.map((name) => (
            <Button
              key={name}
              look={name === theme ? 'plain' : 'quiet'}
              aria-pressed={name === theme}
              onClick={() => {
                chooseTheme(name)
                setTheme(name)
              }}
            >
              {NAMES[name]}
            </Button>
          ))}
        </div>
      </fieldset>
      <div className="border-t border-line pt-1">
        <MenuItem onClick={() => void router.navigate({ to: '/w/$workspace/$environment/settings/account', params })}>
          Your account
        </MenuItem>
        <MenuItem onClick={onKeys}>
          Keys {areKeysOn() && <kbd className="ml-auto font-sans text-xs text-soft">?</kbd>}
        </MenuItem>
        <MenuItem onClick={() => void signOut()}>Sign out</MenuItem>
      </div>
    </Popover>
  )
}

function Initials({ name }: { name: string }) {
  const words = name.split(/[\s@.]+/u).filter((word) => word !== '')
  const letters = words.slice(0, 2).map((word) => Array.from(word)[0]?.toUpperCase() ?? '')
  return (
    <span
      aria-hidden
      className="flex size-8 items-center justify-center rounded-full bg-accent-wash text-xs font-semibold text-accent"
    >
      {letters.join('')}
    </span>
  )
}
