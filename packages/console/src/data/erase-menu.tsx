import type { ErasureSubject } from '@tacho/contract/data/erasure.ts'
import { useState } from 'react'
import type { Place } from '../web/queries.ts'
import { MenuItem } from '../web/ui/menu.tsx'
import { Popover } from '../web/ui/popover.tsx'
import { EraseDialog } from './erase-dialog.tsx'

interface EraseMenuProps {
  place: Place
  subject: Pick<ErasureSubject, 'kind' | 'id'>
  className?: string
}

/** What an admin can do with a session or an agent. */
export function EraseMenu({ place, subject, className = '' }: EraseMenuProps) {
  const [isErasing, setErasing] = useState(false)
  if (!place.may('admin')) return null
  return (
    <>
      <Popover label="More" className={className} panelClassName="w-56 p-1">
        <MenuItem onClick={() => setErasing(true)}>Erase this {subject.kind}…</MenuItem>
      </Popover>
      {isErasing && <EraseDialog place={place} subject={subject} onClose={() => setErasing(false)} />}
    </>
  )
}
