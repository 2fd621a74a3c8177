import { MenuItem } from './menu.tsx'
import { Popover } from './popover.tsx'

interface RowMenuProps {
  /** What the row is about. */
  name: string
  acts: readonly { word: string; act: () => void }[]
}

/** What can be done with the thing of a row. It lies above a link that fills the row. */
export function RowMenu({ name, acts }: RowMenuProps) {
  if (acts.length === 0) return null
  return (
    <Popover label={`Actions for ${name}`} face="⋯" className="relative z-10 inline-block" panelClassName="w-56 p-1">
      {acts.map(({ word, act }) => (
        <MenuItem key={word} onClick={act}>
          {word}
        </MenuItem>
      ))}
    </Popover>
  )
}
