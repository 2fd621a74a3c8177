/** Go to a page, a policy or a prompt, or to a run by the beginning of its id. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useId, useState, type KeyboardEvent } from 'react'
import { api } from '../api.ts'
import { policiesQuery } from '../policies/queries.ts'
import { promptsQuery } from '../prompts/queries.ts'
import { Dialog } from '../ui/dialog.tsx'
import { PAGES } from './pages.ts'

const route = getRouteApi('/w/$workspace/$environment')
const RUNS_SHOWN = 8
const NAMED_SHOWN = 4

interface Choice {
  id: string
  name: string
  note: string
  open: () => void
}

export function Palette({ onClose }: { onClose: () => void }) {
  const id = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const choices = useChoices(text.trim())
  const chosen = choices[Math.min(at, choices.length - 1)]

  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0
    if (step !== 0 && choices.length > 0) {
      event.preventDefault()
      setAt((Math.min(at, choices.length - 1) + step + choices.length) % choices.length)
    } else if (event.key === 'Enter' && chosen) {
      event.preventDefault()
      onClose()
      chosen.open()
    }
  }

  return (
    <Dialog title="Go to" onClose={onClose} className="mt-[12dvh] w-full max-w-xl">
      <input
        autoFocus
        role="combobox"
        aria-label="Page, policy, prompt or run id"
        aria-expanded
        aria-controls={id}
        aria-activedescendant={chosen && `${id}-${chosen.id}`}
        placeholder="Page, policy, prompt, run id, session or agent"
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
            onClick={() => {
              onClose()
              choice.open()
            }}
            className="flex items-center gap-3 rounded-md px-2.5 py-2 text-sm aria-selected:bg-hover"
          >
            <span className="min-w-0 truncate">{choice.name}</span>
            <span className="ml-auto shrink-0 text-soft">{choice.note}</span>
          </li>
        ))}
        {choices.length === 0 && <li className="px-2.5 py-2 text-sm text-soft">Nothing begins with this.</li>}
      </ul>
    </Dialog>
  )
}

function useChoices(text: string): Choice[] {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const environmentId = place.environment.id
  const { data: runs } = useQuery({
    queryKey: ['palette', environmentId, text],
    queryFn: ({ signal }) =>
      api.listOperatorRuns({ params: { environmentId }, query: { q: text, limit: RUNS_SHOWN } }, { signal }),
    enabled: text !== '',
    placeholderData: keepPreviousData,
  })
  const pages = PAGES.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())).map(({ name, to }) => ({
    id: `page${to}`,
    name,
    note: 'Page',
    open: () => void navigate({ to, params }),
  }))
  const found = (text === '' ? [] : (runs?.items ?? [])).map(({ id, runId, agent }) => ({
    id,
    name: runId,
    note: agent.name,
    open: () => void navigate({ to: '/w/$workspace/$environment/runs/$runId', params: { ...params, runId } }),
  }))
  return [...pages, ...useNamed(text), ...found]
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
