/** The pages below Settings, in order. */
import type { Place } from './queries.ts'

interface Who {
  place: Place
  /** Owner of the whole installation. */
  installation: boolean
}

/** By what they are about, in order. A page that is not for everyone says whom it is for. */
export const SECTIONS = [
  {
    of: ({ place }: Who) => place.environment.name,
    pages: [
      { name: 'API keys', to: '/w/$workspace/$environment/settings/api-keys' },
      { name: 'Webhooks', to: '/w/$workspace/$environment/settings/webhooks' },
      { name: 'Alerts', to: '/w/$workspace/$environment/settings/alerts' },
      { name: 'Data', to: '/w/$workspace/$environment/settings/data' },
    ],
  },
  {
    of: ({ place }: Who) => place.workspace.name,
    pages: [
      { name: 'People', to: '/w/$workspace/$environment/settings/people' },
      { name: 'Environments', to: '/w/$workspace/$environment/settings/environments' },
      { name: 'Prices', to: '/w/$workspace/$environment/settings/prices' },
      {
        name: 'Operator tokens',
        to: '/w/$workspace/$environment/settings/tokens',
        for: ({ place }: Who) => place.may('owner'),
      },
      { name: 'Audit log', to: '/w/$workspace/$environment/settings/audit' },
    ],
  },
  {
    of: () => 'Installation',
    pages: [
      {
        name: 'Doctor',
        to: '/w/$workspace/$environment/settings/doctor',
        for: ({ installation }: Who) => installation,
      },
    ],
  },
  {
    of: () => 'You',
    pages: [{ name: 'Your account', to: '/w/$workspace/$environment/settings/account' }],
  },
] as const
