import type { SearchSettings } from '@tacho/contract/runs/search.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { Confirm } from '../../web/ui/form-dialog.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { searchSettingsQuery } from './queries.ts'

/** Switches the search of an environment on, or off after a question. For admins. */
export function SearchSwitch({ environmentId, settings }: { environmentId: string; settings: SearchSettings }) {
  const cache = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const isOff = settings.state === 'OFF' || settings.state === 'REMOVING'
  const change = async () => {
    const now = await api.switchSearch({ params: { environmentId }, body: { enabled: isOff } })
    cache.setQueryData(searchSettingsQuery(environmentId).queryKey, now)
  }
  const on = useMutation({ mutationFn: change })
  if (isOff) {
    return (
      <div className="flex flex-wrap items-center gap-3">
        <Button look="accent" busy={on.isPending} disabled={settings.state === 'REMOVING'} onClick={() => on.mutate()}>
          Switch search on
        </Button>
        {settings.state === 'REMOVING' && (
          <span className="text-sm text-soft">The earlier index is still being deleted.</span>
        )}
        <Refused error={on.error} />
      </div>
    )
  }
  return (
    <>
      <Button onClick={() => setAsking(true)}>Switch search off…</Button>
      {isAsking && (
        <Confirm
          title="Switch search off?"
          act="Switch off"
          run={change}
          onSettled={() => cache.invalidateQueries({ queryKey: searchSettingsQuery(environmentId).queryKey })}
          onClose={() => setAsking(false)}
        >
          The index is deleted. No run is deleted. Switching search on again indexes all runs from the newest.
        </Confirm>
      )}
    </>
  )
}
