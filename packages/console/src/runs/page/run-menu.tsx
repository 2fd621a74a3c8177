import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, BASE } from '../../web/api.ts'
import { EraseDialog } from '../../data/erase-dialog.tsx'
import type { Place } from '../../web/queries.ts'
import { MenuItem, MenuLink } from '../../web/ui/menu.tsx'
import { Popover } from '../../web/ui/popover.tsx'
import { Refused } from '../../web/ui/refused.tsx'
import { runQuery } from '../queries.ts'

/** What a person may do with a run as a whole. */
export function RunMenu({ place, run }: { place: Place; run: OperatorRun }) {
  const [isErasing, setErasing] = useState(false)
  const cache = useQueryClient()
  const params = { environmentId: place.environment.id, runId: run.id }
  const file = `${BASE}/operator/v1/environments/${place.environment.id}/runs/${run.id}/html`
  const isPinned = run.pinnedAt !== null
  const pin = useMutation({
    mutationFn: () => (isPinned ? api.unpinRun({ params }) : api.pinRun({ params })),
    onSettled: () => cache.invalidateQueries({ queryKey: runQuery(params.environmentId, run.runId).queryKey }),
  })
  return (
    <>
      <Refused error={pin.error} />
      <Popover label="More" panelClassName="w-64 p-1">
        <MenuLink href={file}>Save as a page</MenuLink>
        <MenuLink href={`${file}?payloads=true`}>Save as a page, with payloads</MenuLink>
        {place.may('approver') && (
          <MenuItem onClick={() => pin.mutate()}>
            {isPinned ? 'Unpin: retention may remove it' : 'Pin: keep it whatever retention says'}
          </MenuItem>
        )}
        {place.may('admin') && <MenuItem onClick={() => setErasing(true)}>Erase this run…</MenuItem>}
      </Popover>
      {isErasing && (
        <EraseDialog place={place} subject={{ kind: 'run', id: run.runId }} onClose={() => setErasing(false)} />
      )}
    </>
  )
}
