import { getRouteApi, useLocation } from '@tanstack/react-router'
import { readRange } from '../range.ts'
import { Tabs } from './tabs.tsx'

const route = getRouteApi('/w/$workspace/$environment')

const PAGES = [
  ['/w/$workspace/$environment/runs', 'All'],
  ['/w/$workspace/$environment/sessions', 'By session'],
  ['/w/$workspace/$environment/search', 'Search'],
  ['/w/$workspace/$environment/judge', 'Judge'],
] as const

/** The same runs: one by one, by session, or by what their payloads say. */
export function RunsTabs() {
  return <Tabs label="Runs" options={PAGES} params={route.useParams()} search={readRange(useLocation().search)} />
}
