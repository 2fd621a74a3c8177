import type { Prompt } from '@tacho/contract/policies/prompt.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Navigate, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import type { Place } from '../../web/queries.ts'
import { deploymentsQuery } from '../deployments/queries.ts'
import { DeploymentHistory } from '../deployments/deployment-history.tsx'
import { InForceSection } from '../deployments/in-force.tsx'
import { ItemHead } from '../deployments/item-head.tsx'
import { Button } from '../../web/ui/button.tsx'
import { useDraftState } from '../../web/ui/draft-state.ts'
import { Copy } from '../../web/ui/copy.tsx'
import { Field } from '../../web/ui/field.tsx'
import { Refused, Empty, PagePending, Skeleton, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { Tabs } from '../../web/ui/tabs.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { VersionHistory } from '../deployments/version-history.tsx'
import { Diff } from '../../web/text/diff.tsx'
import { Section } from '../../web/ui/section.tsx'
import { Beside } from './prompt-beside.tsx'
import { PromptText } from './prompt-text.tsx'
import { Results } from './prompt-results.tsx'
import { promptOfNameQuery, promptQuery, promptVersionQuery, usePromptVersions } from '../queries.ts'

const route = getRouteApi('/w/$workspace/$environment/prompts/$promptId')
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Finds the prompt by id, or by name as on the command line. */
export function PromptPage() {
  const { promptId } = route.useParams()
  return UUID.test(promptId) ? <OfId /> : <OfName name={promptId} />
}

function OfName({ name }: { name: string }) {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const { data, error, refetch } = useQuery(promptOfNameQuery(place.workspace.id, name))
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (data === undefined) return <PagePending />
  if (data === null) return <Empty title="No prompt with this name">The workspace has no prompt called “{name}”.</Empty>
  return (
    <Navigate
      to="/w/$workspace/$environment/prompts/$promptId"
      params={{ ...params, promptId: data.promptId }}
      search={search}
      replace
    />
  )
}

function OfId() {
  const params = route.useParams()
  const { promptId } = params
  const { show = 'edit' } = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const workspaceId = place.workspace.id
  const { data, error, refetch } = useQuery(promptQuery(workspaceId, promptId))
  useTitle(data?.name ?? 'Prompt')
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <ItemHead
        kind="prompt"
        id={promptId}
        name={data.name}
        version={data.newest.version}
        archivedAt={data.archivedAt}
        damaged={data.newest.damaged === true}
        rename={(name) => api.renamePrompt({ params: { workspaceId, promptId }, body: { name } })}
        archive={() => api.archivePrompt({ params: { workspaceId, promptId } })}
        restore={() => api.restorePrompt({ params: { workspaceId, promptId } })}
      >
        <Copy text={data.newest.versionId} label="Copy version id" />
      </ItemHead>
      <Tabs
        label="Parts of the prompt"
        value={show}
        options={[
          ['edit', 'Text'],
          ['versions', 'Versions'],
          ['results', 'Results'],
          ['deployments', 'Deployments'],
        ]}
        onChange={(chosen) =>
          void navigate({ to: '.', search: chosen === 'edit' ? {} : { show: chosen }, replace: true })
        }
      />
      {show === 'edit' && (
        <div className="grid grid-cols-1 gap-x-8 lg:grid-cols-[minmax(0,1fr)_20rem]">
          <div className="min-w-0 max-lg:order-last">
            <Text prompt={data} place={place} />
          </div>
          <Beside promptId={promptId} name={data.name} newestVersion={data.newest.version} />
        </div>
      )}
      {show === 'versions' && <Versions prompt={data} />}
      {show === 'results' && <Results environment={place.environment} promptId={promptId} />}
      {show === 'deployments' && (
        <>
          <InForceSection
            workspaceId={workspaceId}
            item={{ kind: 'prompt', id: promptId }}
            name={data.name}
            newestVersion={data.newest.version}
            canDeploy={place.may('admin')}
          />
          <DeploymentHistory environment={place.environment} item={{ kind: 'prompt', id: promptId }} />
        </>
      )}
    </div>
  )
}

/**
 * Begins with the version in force here; without one, with the newest. A later publication does not change what a
 * person is reading or editing.
 */
function Text({ prompt, place }: { prompt: Prompt; place: Place }) {
  const newest = prompt.newest.version
  const { name, id: environmentId } = place.environment
  const deployed = useQuery(deploymentsQuery(environmentId))
  const [chosen, setChosen] = useState<string | null>(null)
  const inForce = deployed.data?.find(({ kind, id }) => kind === 'prompt' && id === prompt.promptId)?.version
  const version = chosen ?? inForce ?? newest
  if (deployed.isPending) return <Skeleton className="mt-5 h-80" />
  if (chosen === null) setChosen(version)
  const others = [...new Set([inForce ?? newest, newest])].filter((one) => one !== version)
  const canWrite = place.may('admin')
  return (
    <>
      {others.length > 0 && (
        <p className="mt-5 -mb-3 flex flex-wrap items-center gap-x-2 text-sm text-soft">
          <span>
            This is <b className="font-medium text-ink">version {version}</b>
            {version === inForce && `, in force in ${name}`}
            {version === newest && ', the newest'}.
            {others.map((one) =>
              one === inForce
                ? ` In force in ${name} is version ${one}${one === newest ? ', the newest' : ''}.`
                : ` The newest is version ${one}.`,
            )}
          </span>
          {others.map((one) => (
            <button key={one} type="button" className="link min-h-6" onClick={() => setChosen(one)}>
              Show version {one}
            </button>
          ))}
        </p>
      )}
      <TextOf key={`${newest} ${version}`} {...{ prompt, version, canWrite }} onSaved={setChosen} />
      <SinceBefore prompt={prompt} version={version} />
    </>
  )
}

interface TextOfProps {
  prompt: Prompt
  version: string
  canWrite: boolean
  onSaved: (version: string) => void
}

function TextOf({ prompt: { workspaceId, promptId, newest }, version, canWrite, onSaved }: TextOfProps) {
  const isDamaged = newest.damaged && version === newest.version
  const read = useQuery({ ...promptVersionQuery(workspaceId, promptId, version), enabled: !isDamaged })
  // Never show a damaged text. A person can save a new one.
  const shown = isDamaged ? { version, content: '' } : read.data
  if (isBlocking(read.error, shown)) return <Trouble error={read.error} retry={() => void read.refetch()} />
  if (!shown) return <Skeleton className="mt-5 h-80" />
  return <Editor {...{ workspaceId, promptId, shown, canWrite, onSaved }} newest={newest.version} />
}

interface EditorProps {
  workspaceId: string
  promptId: string
  newest: string
  shown: { version: string; content: string }
  canWrite: boolean
  onSaved: (version: string) => void
}

/** Edits a version. Saving makes the next version after the newest; agents get it only after a deployment. */
function Editor({ workspaceId, promptId, newest, shown, canWrite, onSaved }: EditorProps) {
  const from = shown.version === newest ? '' : ` from ${shown.version}`
  const written = useDraftState(`prompt ${workspaceId} ${promptId} ${newest}${from}`, {
    content: shown.content,
    note: '',
  })
  const { content, note } = written.value
  const save = useMutation({
    mutationFn: () =>
      api.createPromptVersion({
        params: { workspaceId, promptId },
        body: { content, note: note.trim() || null, follows: newest },
      }),
    onSuccess({ version }) {
      written.forget()
      onSaved(version)
    },
  })
  return (
    <form
      className="mt-5"
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <PromptText value={content} onChange={(text) => written.set({ note, content: text })} readOnly={!canWrite} />
      {canWrite && content !== shown.content && (
        <>
          <Field
            label="What changed, and why"
            className="mt-3"
            maxLength={LIMITS.noteChars}
            value={note}
            onChange={(event) => written.set({ content, note: event.target.value })}
          />
          <div className="mt-3 flex flex-wrap items-center gap-2">
            <Button type="submit" look="accent" busy={save.isPending} disabled={content === ''}>
              Save version {Number(newest) + 1}
            </Button>
            <Button look="quiet" onClick={written.forget}>
              Discard
            </Button>
            {written.wasBack && <span className="text-sm">What you wrote before is back.</span>}
            <span className="text-sm text-soft">Agents get it only once it is deployed.</span>
            <Refused error={save.error} className="w-full" />
          </div>
        </>
      )}
    </form>
  )
}

/** The changes of this version compared with the one before. */
function SinceBefore({ prompt: { workspaceId, promptId }, version: to }: { prompt: Prompt; version: string }) {
  const from = String(Number(to) - 1)
  const { items } = usePromptVersions(workspaceId, promptId)
  const isWhole = (number: string) => items.some(({ version, damaged }) => version === number && !damaged)
  const { data } = useQuery({
    // The difference from a damaged text cannot be shown.
    enabled: isWhole(from) && isWhole(to),
    queryKey: ['prompts', workspaceId, promptId, 'diff', from, to],
    queryFn: ({ signal }) =>
      api.diffPromptVersions({ params: { workspaceId, promptId }, query: { from, to } }, { signal }),
    staleTime: Infinity,
    retry: false,
  })
  return data ? (
    <Section title={`Changed since v${from}`}>
      <Diff diff={data} />
    </Section>
  ) : null
}

function Versions({ prompt: { workspaceId, promptId, newest } }: { prompt: Prompt }) {
  const search = route.useSearch()
  const navigate = useNavigate()
  const versions = usePromptVersions(workspaceId, promptId)
  const { to = Number(newest.version), from = Math.max(1, to - 1) } = search
  return (
    <VersionHistory
      list={versions}
      from={String(from)}
      to={String(to)}
      onCompare={(change) => void navigate({ to: '.', search: { ...search, from, to, ...change }, replace: true })}
      queryKey={['prompts', workspaceId, promptId]}
      readDiff={(query, signal) => api.diffPromptVersions({ params: { workspaceId, promptId }, query }, { signal })}
    />
  )
}
