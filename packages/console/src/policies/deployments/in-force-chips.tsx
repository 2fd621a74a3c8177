import { Chip } from '../../web/ui/chip.tsx'
import { inForce, type Deployed, type Item } from './queries.ts'

interface InForceChipsProps {
  deployed: readonly Deployed[]
  item: Item
  newestVersion: string
}

/** Where an item is in force, and in which version; an older version stands out. */
export function InForceChips({ deployed, item, newestVersion }: InForceChipsProps) {
  const places = inForce(deployed, item).filter(({ deployment }) => deployment !== null)
  return (
    <span className="flex flex-wrap gap-1">
      {places.map(({ environment, deployment }) => (
        <Chip key={environment.id} tone={deployment?.version === newestVersion ? 'plain' : 'amber'}>
          {environment.name}: {deployment?.version}
        </Chip>
      ))}
      {places.length === 0 && <span className="text-soft">nowhere</span>}
    </span>
  )
}
