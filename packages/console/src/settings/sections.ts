/** The pages below Settings, in order. */
export const SECTIONS = [{ name: 'API keys', to: '/w/$workspace/$environment/settings/api-keys' }] as const
