/** The pages of the header, the palette and the keys `g …`, in order. */
export const PAGES = [
  { name: 'Overview', to: '/w/$workspace/$environment', key: 'o' },
  { name: 'Runs', to: '/w/$workspace/$environment/runs', key: 'r' },
  { name: 'Approvals', to: '/w/$workspace/$environment/approvals', key: 'a' },
  { name: 'Issues', to: '/w/$workspace/$environment/issues', key: 'i' },
  { name: 'Policies', to: '/w/$workspace/$environment/policies', key: 'p' },
  { name: 'Prompts', to: '/w/$workspace/$environment/prompts', key: 'm' },
  { name: 'Settings', to: '/w/$workspace/$environment/settings', key: ',' },
  { name: 'Get started', to: '/w/$workspace/$environment/get-started', key: 's' },
] as const
