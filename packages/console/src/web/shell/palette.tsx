/**
 * The command palette: runs an act of the current page; opens a page, policy, prompt, issue, agent, or a run by the
 * beginning of its id; or searches payloads.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useId, useState, type KeyboardEvent } from 'react'
import { api } from '../api.ts'
import { meQuery } from '../queries.ts'
import { policiesQuery, promptsQuery } from '../../policies/queries.ts'
import { Dialog } from '../ui/overlay.tsx'
import { actsOnScreen, areKeysOn, type NamedAct } from '../ui/keys.ts'
import type { Range } from '../address.ts'
import { withRange, PAGES, PLACES_TO_START, SETTINGS } from './pages.ts'

const route = getRouteApi('/w/$workspace/$environment')
const RUNS_SHOWN = 8
const NAMED_SHOWN = 4

interface Choice {
  id: string
  name: string
  note: string
  open: () => void
}

export function Palette({ range, onClose }: { range: Range; onClose: () => void }) {
  const id = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [acts] = useState(actsOnScreen)
  const choices = useChoices(text.trim(), acts, range)
  const choose = (choice: Choice) => {
    onClose()
    // Wait until the dialog has returned the focus.
    setTimeout(choice.open)
  }
  const chosen = choices[Math.min(at, choices.length - 1)]
  const chosenId = chosen && `${id}-${chosen.id}`
  useEffect(() => {
    if (chosenId) document.getElementById(chosenId)?.scrollIntoView({ block: 'nearest' })
  }, [chosenId])

  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0
    if (step !== 0 && choices.length > 0) {
      event.preventDefault()
      setAt((Math.min(at, choices.length - 1) + step + choices.length) % choices.length)
    } else if (event.key === 'Enter' && chosen) {
      event.preventDefault()
      choose(chosen)
    }
  }

  return (
    <Dialog title="Go to" onClose={onClose} className="mt-[12dvh] w-full max-w-xl">
      <input
        autoFocus
        role="combobox"
        aria-label="Page, policy, prompt, issue, agent or run id"
        aria-expanded
        aria-controls={id}
        aria-activedescendant={chosenId}
        placeholder="Act on this page, or go to another"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
        className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none placeholder:text-soft"
      />
      <ul id={id} role="listbox" aria-label="Results" className="max-h-80 overflow-y-auto p-1.5">
        {choices.map((choice) => (
          <li
            key={choice.id}
            id={`${id}-${choice.id}`}
            role="option"
            aria-selected={choice === chosen}
            onMouseMove={() => setAt(choices.indexOf(choice))}
            onClick={() => choose(choice)}
            className="flex items-center gap-3 rounded-md px-2.5 py-2 text-sm aria-selected:bg-hover"
          >
            <bdi className="min-w-0 truncate">{choice.name}</bdi>
            <span className="ml-auto shrink-0 text-soft">{choice.note}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

function useChoices(text: string, acts: readonly (NamedAct & { key: string })[], range: Range): Choice[] {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const environmentId = place.environment.id
  const { data: runs, isPlaceholderData } = useQuery({
    queryKey: ['palette', environmentId, text],
    queryFn: ({ signal }) =>
      api.listOperatorRuns({ params: { environmentId }, query: { q: text, limit: RUNS_SHOWN } }, { signal }),
    enabled: text !== '',
    placeholderData: keepPreviousData,
  })
  const isWanted = ({ name }: { name: string }) => name.toLowerCase().includes(text.toLowerCase())
  const here = acts
    .filter(isWanted)
    .map(({ key, name, act }) => ({ id: `act-${key}`, name, note: areKeysOn() ? key : 'Here', open: act }))
  const { data: me } = useQuery(meQuery)
  const who = { place, installation: me?.installation === true }
  const isMeant = (page: { name: string; also: string }) => isWanted(page) || isWanted({ name: page.also })
  const settings = SETTINGS.flatMap(({ pages }) => pages.filter((page) => !('for' in page) || page.for(who)))
  // Show settings only for a typed text: a dozen of them would hide the other entries.
  const places = [...PLACES_TO_START, ...settings].filter((page) => text !== '' && isMeant(page))
  const led = places.map((page) => ({
    id: `page${page.name}`,
    name: page.name,
    note: page.to.includes('/settings/') ? 'Settings' : 'Page',
    open: () => void navigate({ ...page, params }),
  }))
  const pages = PAGES.filter(isMeant).map((page) => ({
    id: `page${page.to}`,
    name: page.name,
    note: 'Page',
    open: () => void navigate({ ...withRange(page, range), params }),
  }))
  // Enter opens the first entry, so leave out entries of an earlier text.
  const fitting = (runs?.items ?? []).filter(({ runId }) => !isPlaceholderData || runId.startsWith(text))
  const foundRuns = (text === '' ? [] : fitting).map(({ id, runId, agent }) => ({
    id,
    name: runId,
    note: agent.name,
    open: () => void navigate({ to: '/w/$workspace/$environment/runs/$runId', params: { ...params, runId } }),
  }))
  const search: Choice = {
    id: 'search',
    name: `Search payloads for “${text}”`,
    note: 'Search',
    open: () => void navigate({ to: '/w/$workspace/$environment/search', params, search: { ...range, q: text } }),
  }
  const named = [...useNamed(text), ...useAgents(text), ...useIssuesOf(text), ...foundRuns]
  // Matching names come before entries that match only in other words.
  const byName = [...pages, ...led].sort((a, b) => Number(isWanted(b)) - Number(isWanted(a)))
  return [...here, ...byName, ...named, ...(text === '' ? [] : [search])]
}

/** Agents whose name or id contains the text. */
function useAgents(text: string): Choice[] {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const environmentId = place.environment.id
  const { data } = useQuery({
    queryKey: ['palette agents', environmentId, text],
    queryFn: ({ signal }) =>
      api.listAgents({ params: { environmentId }, query: { q: text, limit: NAMED_SHOWN } }, { signal }),
    enabled: text !== '',
    placeholderData: keepPreviousData,
  })
  if (text === '') return []
  const wanted = text.toLowerCase()
  // Enter opens the first entry, so leave out entries of an earlier text.
  return (data?.items ?? [])
    .filter(({ name, reportedName, agentId }) =>
      `${name}\n${reportedName}\n${agentId ?? ''}`.toLowerCase().includes(wanted),
    )
    .map(({ id, name, agentId }) => ({
      id,
      name,
      note: 'Agent',
      open: () =>
        void navigate({
          to: '/w/$workspace/$environment/agents/$agent',
          params: { ...params, agent: agentId ?? name },
        }),
    }))
}

/** Issues whose title contains the text, last detected first. */
function useIssuesOf(text: string): Choice[] {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const environmentId = place.environment.id
  const { data } = useQuery({
    queryKey: ['palette issues', environmentId],
    queryFn: ({ signal }) =>
      api.listIssues({ params: { environmentId }, query: { limit: LIMITS.operatorPageMax } }, { signal }),
    enabled: text !== '',
    staleTime: 10_000,
  })
  if (text === '') return []
  const wanted = text.toLowerCase()
  return (data?.items ?? [])
    .filter(({ title }) => title.toLowerCase().includes(wanted))
    .slice(0, NAMED_SHOWN)
    .map(({ id, title, state }) => ({
      id,
      name: title,
      // Without the table of states, because every page loads this script.
      note: `${state.charAt(0)}${state.slice(1).toLowerCase()} issue`,
      open: () =>
        void navigate({ to: '/w/$workspace/$environment/issues/$issueId', params: { ...params, issueId: id } }),
    }))
}

/** Policies and prompts whose name or id contains the text. */
function useNamed(text: string): Choice[] {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const workspaceId = place.workspace.id
  const { data: policies = [] } = useQuery({ ...policiesQuery(workspaceId), enabled: text !== '' })
  const { data: prompts = [] } = useQuery({ ...promptsQuery(workspaceId), enabled: text !== '' })
  if (text === '') return []
  const wanted = text.toLowerCase()
  const foundPolicies = policies
    .filter(({ policyId, newest }) => `${policyId}\n${newest.name}`.toLowerCase().includes(wanted))
    .map(({ policyId, newest }) => ({
      id: `policy-${policyId}`,
      name: newest.name,
      note: 'Policy',
      open: () =>
        void navigate({ to: '/w/$workspace/$environment/policies/$policyId', params: { ...params, policyId } }),
    }))
  const foundPrompts = prompts
    .filter(({ name }) => name.toLowerCase().includes(wanted))
    .map(({ promptId, name }) => ({
      id: promptId,
      name,
      note: 'Prompt',
      open: () =>
        void navigate({ to: '/w/$workspace/$environment/prompts/$promptId', params: { ...params, promptId } }),
    }))
  return [...foundPolicies.slice(0, NAMED_SHOWN), ...foundPrompts.slice(0, NAMED_SHOWN)]
}
