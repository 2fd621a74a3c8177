/** The pages below Settings, in order. */
import type { Place } from '../queries.ts'

interface Who {
  place: Place
  /** Owner of the whole installation. */
  installation: boolean
}

export const SECTIONS = [
  { name: 'API keys', to: '/w/$workspace/$environment/settings/api-keys' },
  { name: 'Webhooks', to: '/w/$workspace/$environment/settings/webhooks' },
  { name: 'Alerts', to: '/w/$workspace/$environment/settings/alerts' },
  { name: 'Prices', to: '/w/$workspace/$environment/settings/prices' },
  { name: 'Data', to: '/w/$workspace/$environment/settings/data' },
  { name: 'Environments', to: '/w/$workspace/$environment/settings/environments' },
  { name: 'People', to: '/w/$workspace/$environment/settings/people' },
  {
    name: 'Operator tokens',
    to: '/w/$workspace/$environment/settings/tokens',
    for: ({ place }: Who) => place.may('owner'),
  },
  { name: 'Audit log', to: '/w/$workspace/$environment/settings/audit' },
  {
    name: 'Doctor',
    to: '/w/$workspace/$environment/settings/doctor',
    for: ({ installation }: Who) => installation,
  },
  { name: 'Your account', to: '/w/$workspace/$environment/settings/account' },
] as const
