import { useMatches } from '@tanstack/react-router'
import { useState } from 'react'
import { readRange, type Range } from '../address.ts'
import type { Place } from '../queries.ts'

/**
 * The pages in the palette and for the keys `g …`, in order. `hasRange`: the page's address contains a range, which is
 * carried from page to page. `also`: other words with which people search for the page.
 */
export const PAGES = [
  { name: 'Overview', also: '', to: '/w/$workspace/$environment', key: 'o', hasRange: true },
  { name: 'Runs', also: 'traces', to: '/w/$workspace/$environment/runs', key: 'r', hasRange: true },
  { name: 'Agents', also: '', to: '/w/$workspace/$environment/agents', key: 'n', hasRange: true },
  { name: 'Sessions', also: '', to: '/w/$workspace/$environment/sessions', key: 'e', hasRange: true },
  { name: 'Search', also: '', to: '/w/$workspace/$environment/search', key: 'f', hasRange: true },
  { name: 'Judge', also: 'score, annotate, label', to: '/w/$workspace/$environment/judge', key: 'j', hasRange: true },
  {
    name: 'Approvals',
    also: 'decide, requests, inbox',
    to: '/w/$workspace/$environment/approvals',
    key: 'a',
    hasRange: false,
  },
  { name: 'Issues', also: 'errors, problems', to: '/w/$workspace/$environment/issues', key: 'i', hasRange: true },
  {
    name: 'Policies',
    also: 'new policy, rules, simulate, ready sets, examples, prompt injection',
    to: '/w/$workspace/$environment/policies',
    key: 'p',
    hasRange: false,
  },
  {
    name: 'Prompts',
    also: 'new prompt, roll back',
    to: '/w/$workspace/$environment/prompts',
    key: 'm',
    hasRange: false,
  },
  {
    name: 'Rollout',
    also: 'deploy, versions in force, revision, clients, stop, resume, kill switch, labels of tools, flow of values',
    to: '/w/$workspace/$environment/rollout',
    key: 'l',
    hasRange: false,
  },
  { name: 'Usage', also: 'cost, tokens, bill', to: '/w/$workspace/$environment/usage', key: 'u', hasRange: true },
  { name: 'Settings', also: '', to: '/w/$workspace/$environment/settings', key: ',', hasRange: false },
  {
    name: 'Get started',
    also: 'install, record, SDK, curl',
    to: '/w/$workspace/$environment/get-started',
    key: 's',
    hasRange: false,
  },
] as const

/** Further entries of the palette, apart from the pages above and the settings. */
export const PLACES_TO_START = [
  { name: 'New policy', also: 'write a condition', to: '/w/$workspace/$environment/new-policy' },
  { name: 'New prompt', also: 'write a prompt', to: '/w/$workspace/$environment/new-prompt' },
  { name: 'Compare two runs', also: 'difference', to: '/w/$workspace/$environment/compare' },
  // With this hash, the page opens its dialog.
  { name: 'Invite a colleague', also: 'new person', to: '/w/$workspace/$environment/settings/people', hash: 'new' },
] as const

/** Pages that are needed only once, or are a tab of another page. */
const NOT_IN_HEADER: readonly string[] = ['Sessions', 'Search', 'Judge', 'Get started']
export const HEADER_PAGES = PAGES.filter(({ name }) => !NOT_IN_HEADER.includes(name))

const RANGED: ReadonlySet<string> = new Set([
  ...PAGES.filter(({ hasRange }) => hasRange).map(({ to }) => to),
  '/w/$workspace/$environment/agents/$agent',
])

/** Whether the page at this route reads a range from its address. */
const hasRange = (fullPath: string): boolean => RANGED.has(fullPath.replace(/\/$/, ''))

/** The range to carry: that of the current page or, if it has none, of the last page that had one. */
export function useCarriedRange(): Range {
  const text = useMatches({
    select(matches) {
      const page = matches.at(-1)
      return page && hasRange(page.fullPath) ? JSON.stringify(readRange(page.search)) : null
    },
  })
  const [kept, setKept] = useState('{}')
  if (text !== null && text !== kept) setKept(text)
  return JSON.parse(text ?? kept) as Range
}

/** The address of a page, with the range if the page has one. */
export function withRange<To extends string>({ to, hasRange }: { to: To; hasRange: boolean }, range: Range) {
  return { to, search: hasRange ? range : {} }
}

/** The pages of the settings, in order. */

interface Who {
  place: Place
  /** Only for owners of the installation. */
  installation: boolean
}

/** Sorted by subject. A page that is not for everyone names its audience. */
export const SETTINGS = [
  {
    of: ({ place }: Who) => place.environment.name,
    pages: [
      { name: 'API keys', also: 'create a key, rotate', to: '/w/$workspace/$environment/settings/api-keys' },
      {
        name: 'Webhooks',
        also: 'slack, teams, mail, pagerduty, notify',
        to: '/w/$workspace/$environment/settings/webhooks',
      },
      { name: 'Alerts', also: 'budget, alarm', to: '/w/$workspace/$environment/settings/alerts' },
      {
        name: 'Data',
        also: 'retention, erase, export, search, receipts',
        to: '/w/$workspace/$environment/settings/data',
      },
    ],
  },
  {
    of: ({ place }: Who) => place.workspace.name,
    pages: [
      {
        name: 'People',
        also: 'roles, members, remove',
        to: '/w/$workspace/$environment/settings/people',
      },
      {
        name: 'Environments',
        also: 'workspaces, create an environment, archive, stalled runs',
        to: '/w/$workspace/$environment/settings/environments',
      },
      { name: 'Prices', also: 'cost of models', to: '/w/$workspace/$environment/settings/prices' },
      {
        name: 'Operator tokens',
        also: 'service accounts, scripts',
        to: '/w/$workspace/$environment/settings/tokens',
        for: ({ place }: Who) => place.may('owner'),
      },
      { name: 'Audit log', also: 'who changed what, history', to: '/w/$workspace/$environment/settings/audit' },
    ],
  },
  {
    of: () => 'Installation',
    pages: [
      {
        name: 'Doctor',
        also: 'health, why does it not work',
        to: '/w/$workspace/$environment/settings/doctor',
        for: ({ installation }: Who) => installation,
      },
    ],
  },
  {
    of: () => 'You',
    pages: [
      {
        name: 'Your account',
        also: 'password, second factor, sessions, notifications, sign out everywhere',
        to: '/w/$workspace/$environment/settings/account',
      },
    ],
  },
] as const
