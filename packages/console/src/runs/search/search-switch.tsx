import type { SearchSettings } from '@tacho/contract/runs/search.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { Confirm } from '../../web/ui/form-dialog.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { searchSettingsQuery } from './queries.ts'

interface Props {
  environmentId: string
  settings: SearchSettings
  /** The query to run once search is on. Absent: show only a button. */
  query?: string
  onQuery?: (text: string) => void
}

/** Switches the search of an environment on, or after a confirmation off. For admins. */
export function SearchSwitch({ environmentId, settings, query, onQuery }: Props) {
  const cache = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const [text, setText] = useState(query ?? '')
  const isOff = settings.state === 'OFF' || settings.state === 'REMOVING'
  const change = async () => {
    const now = await api.switchSearch({ params: { environmentId }, body: { enabled: isOff } })
    cache.setQueryData(searchSettingsQuery(environmentId).queryKey, now)
  }
  const on = useMutation({ mutationFn: change })
  if (isOff) {
    return (
      <form
        role={onQuery && 'search'}
        className="flex flex-wrap items-center justify-center gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          onQuery?.(text.trim())
          on.mutate()
        }}
      >
        {onQuery && (
          <input
            type="search"
            aria-label="Search payloads"
            placeholder="Words, “phrases”, tool:refund"
            maxLength={LIMITS.searchQueryChars}
            value={text}
            onChange={(event) => setText(event.target.value)}
            className="field w-full sm:w-80"
          />
        )}
        <Button type="submit" look="accent" busy={on.isPending} disabled={settings.state === 'REMOVING'}>
          {text.trim() === '' ? 'Switch search on' : 'Switch on and search'}
        </Button>
        {settings.state === 'REMOVING' && (
          <span className="text-sm text-soft">The earlier index is still being deleted.</span>
        )}
        <Refused error={on.error} />
      </form>
    )
  }
  return (
    <>
      <Button onClick={() => setAsking(true)}>Switch search off…</Button>
      {isAsking && (
        <Confirm title="Switch search off?" act="Switch off" run={change} onClose={() => setAsking(false)}>
          The index is deleted. No run is deleted. Switching search on again indexes all runs from the newest.
        </Confirm>
      )}
    </>
  )
}
