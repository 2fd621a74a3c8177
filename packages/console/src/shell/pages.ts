/** The pages of the palette and the keys `g …`, in order. */
export const PAGES = [
  { name: 'Overview', to: '/w/$workspace/$environment', key: 'o' },
  { name: 'Runs', to: '/w/$workspace/$environment/runs', key: 'r' },
  { name: 'Agents', to: '/w/$workspace/$environment/agents', key: 'n' },
  { name: 'Sessions', to: '/w/$workspace/$environment/sessions', key: 'e' },
  { name: 'Search', to: '/w/$workspace/$environment/search', key: 'f' },
  { name: 'Judge', to: '/w/$workspace/$environment/judge', key: 'j' },
  { name: 'Approvals', to: '/w/$workspace/$environment/approvals', key: 'a' },
  { name: 'Issues', to: '/w/$workspace/$environment/issues', key: 'i' },
  { name: 'Policies', to: '/w/$workspace/$environment/policies', key: 'p' },
  { name: 'Prompts', to: '/w/$workspace/$environment/prompts', key: 'm' },
  { name: 'Rollout', to: '/w/$workspace/$environment/rollout', key: 'l' },
  { name: 'Usage', to: '/w/$workspace/$environment/usage', key: 'u' },
  { name: 'Settings', to: '/w/$workspace/$environment/settings', key: ',' },
  { name: 'Get started', to: '/w/$workspace/$environment/get-started', key: 's' },
] as const

/** Needed once, or a tab of another page. */
const NOT_IN_HEADER: readonly string[] = ['Sessions', 'Search', 'Judge', 'Get started']
export const HEADER_PAGES = PAGES.filter(({ name }) => !NOT_IN_HEADER.includes(name))
