import { counted, spokenNumber } from '../engine/output.ts'

/** What a backup or a restored store holds. */
export function countsText({
  runs,
  events,
  policies,
  people,
}: Record<'runs' | 'events' | 'policies' | 'people', number>): string {
  const parts = [
    counted(runs, 'run'),
    counted(events, 'event'),
    policies === 1 ? '1 policy' : `${spokenNumber(policies)} policies`,
  ]
  const folk = people === 1 ? '1 person' : `${spokenNumber(people)} people`
  return `${parts.join(', ')} and ${folk}`
}
