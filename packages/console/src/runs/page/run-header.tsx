import { useQuery, useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { completenessText } from '@tacho/contract/record/completeness-text.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { tokensText } from '@tacho/contract/runs/run-text.ts'
import {
  BY_OUTCOME,
  cancellationOf,
  causeLines,
  failureOf,
  SILENT_CAUSES,
  whyEnded,
} from '@tacho/contract/issues/failure.ts'
import { ownFrame } from '@tacho/contract/issues/stack-frame.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { runLength, stalledMs } from '@tacho/contract/runs/run-activity.ts'
import { Button } from '../../web/ui/button.tsx'
import { Chip } from '../../web/ui/chip.tsx'
import { Copy } from '../../web/ui/copy.tsx'
import { Cost } from '../../web/text/figures.tsx'
import { costsOf } from '../../web/text/costs.ts'
import { compact, counted, duration, exact, number } from '../../web/text/format.ts'
import { useNow, Time } from '../../web/text/times.tsx'
import { ShownText } from '../../web/text/shown-text.tsx'
import { StopDialog } from '../../policies/deployments/stop-dialogs.tsx'
import { StopsOfRun } from '../../policies/deployments/stop-notes.tsx'
import { GoodRun, OriginalRun } from './good-run.tsx'
import { eventQuery, type Step } from '../queries.ts'
import type { Told } from './problems.ts'
import { RunStatusChip, useWaitingFor } from '../run-status.tsx'
import { api, BASE } from '../../web/api.ts'
import { EraseDialog } from '../../data/erase-dialog.tsx'
import type { Place } from '../../web/queries.ts'
import { MenuItem, MenuLink, Popover } from '../../web/ui/overlay.tsx'
import { Refused } from '../../web/ui/states.tsx'

const route = getRouteApi('/w/$workspace/$environment')
interface Props {
  run: OperatorRun
  /** The user's question; null: not known. */
  question: string | null
  /** The step that failed, and the number of failures like it; null: not known. */
  failed: { step: Step; times: number } | null
  /** The last call that was held; null if none was. */
  blocked: Told | null
  onCompare: () => void
  onJudge: () => void
  /** Opens the step with the error. */
  onFailure: () => void
}

export function RunHeader({ run, question, failed, blocked, onCompare, onJudge, onFailure }: Props) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const now = useNow()
  const silence = stalledMs(run, now)
  const approvalId = useWaitingFor(run.runId)
  const costs = costsOf(run)
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-2.5 gap-y-1 lg:flex-nowrap">
        <h1
          className="flex min-w-0 items-baseline gap-2 max-sm:w-full max-sm:flex-col max-sm:gap-0"
          title={question ?? run.runId}
        >
          {question !== null && (
            <bdi className="min-w-0 truncate text-lg font-semibold max-sm:line-clamp-2 max-sm:whitespace-normal">
              <ShownText text={question} />
            </bdi>
          )}
          <bdi
            className={
              question === null
                ? 'min-w-0 truncate text-lg font-semibold'
                : 'max-w-40 shrink-0 truncate font-mono text-xs text-soft max-sm:max-w-full'
            }
          >
            {run.runId}
          </bdi>
        </h1>
        <span className="flex shrink-0 items-center gap-2.5">
          <span className="print:hidden">
            <Copy text={run.runId} label="Copy id" />
          </span>
          <RunStatusChip run={run} />
          {run.pinnedAt !== null && <Chip>Pinned</Chip>}
        </span>
        {approvalId !== null && run.status === 'RUNNING' ? (
          <Link
            to="/w/$workspace/$environment/approvals/$approvalId"
            params={{ ...params, approvalId }}
            className="link shrink-0 text-sm"
          >
            waits for an approval
          </Link>
        ) : (
          silence !== null && <span className="shrink-0 text-sm text-amber">no event for {duration(silence)}</span>
        )}
        <span className="ml-auto flex flex-wrap items-center gap-x-2 sm:shrink-0 print:hidden">
          {(run.status === 'FAILED' || run.status === 'CANCELLED') && <GoodRun key={run.id} run={run} />}
          {Object.hasOwn(run.metadata, 'replayOf') && <OriginalRun key={run.id} run={run} />}
          <Button look="quiet" onClick={onCompare}>
            Compare…
          </Button>
          {place.may('approver') && (
            <Button look="quiet" aria-keyshortcuts="m" title="Key: m" onClick={onJudge}>
              Judge…
            </Button>
          )}
          <RunMenu place={place} run={run} />
        </span>
      </div>
      <Why run={run} failed={failed} blocked={blocked} onFailure={onFailure} />
      <StopsOfRun place={place} runId={run.runId} />
      <dl className="mt-1 flex flex-wrap gap-x-4 gap-y-0.5 text-sm text-soft">
        <Fact name="Agent">
          <Link
            to="/w/$workspace/$environment/agents/$agent"
            params={{ ...params, agent: run.agentId ?? run.agent.name }}
            className="link"
          >
            <bdi>{run.agent.name}</bdi>
          </Link>
        </Fact>
        <Fact name="Started">
          <Time at={run.startedAt} />
        </Fact>
        <Fact name="Length">{duration(runLength(run, now))}</Fact>
        {run.status === 'RUNNING' && silence === null && (
          <Fact name="Last event">
            last event <Time at={run.lastEventAt} />
          </Fact>
        )}
        <Fact name="Steps">{counted(run.eventCount, 'step')}</Fact>
        <Arrived run={run} />
        <Fact name="Tokens">{tokensText(run.usage.totalTokens, compact)}</Fact>
        <Fact name="Cost">
          cost <Cost of={costs} />
          {costs.table !== null && costs.estimated !== null && `, estimated with ${costs.table}`}
        </Fact>
        {run.sessionId !== null && (
          <Fact name="Session">
            session{' '}
            <Link
              to="/w/$workspace/$environment/sessions/$sessionId"
              params={{ ...params, sessionId: run.sessionId }}
              className="link"
            >
              <bdi>{run.sessionId}</bdi>
            </Link>
          </Fact>
        )}
        <Labels run={run} />
      </dl>
    </>
  )
}

/** End user, tags and metadata. Each links to the runs that share it. */
function Labels({ run: { userId, tags, metadata } }: Pick<Props, 'run'>) {
  const params = route.useParams()
  const pairs = Object.entries(metadata).map(([key, value]) => `${key}=${value}`)
  const facts = [
    ['End user', 'user', 'user', userId === null ? [] : [userId]],
    ['Tags', 'tags', 'tag', tags],
    ['Metadata', 'metadata', 'metadata', pairs],
  ] as const
  return facts.map(
    ([name, word, filter, texts]) =>
      texts.length > 0 && (
        <Fact key={name} name={name}>
          {word}
          {texts.map((text) => (
            <Link
              key={text}
              to="/w/$workspace/$environment/runs"
              params={params}
              search={{ [filter]: text }}
              title={text}
              className="link ml-1.5"
            >
              <bdi>
                <ShownText text={text} />
              </bdi>
            </Link>
          ))}
        </Fact>
      ),
  )
}

/** The reason of a failure or cancellation, which people look for first. */
function Why({ run, failed, blocked, onFailure }: Pick<Props, 'run' | 'failed' | 'blocked' | 'onFailure'>) {
  const held = blocked && `before that, ${blocked.text.replace(/ blocked$/, ' was blocked')} ${blocked.why}`.trim()
  const why = whyEnded(run) ?? (run.status === 'FAILED' ? `${BY_OUTCOME}; ${held ?? 'no event says why'}` : null)
  if (why === null) return null
  const { failure } = run
  const isCancelled = run.status === 'CANCELLED'
  const isByOutcome = why.startsWith(BY_OUTCOME)
  return (
    <div
      role="note"
      aria-label={isCancelled ? 'Why it was cancelled' : 'Why it failed'}
      className={`mt-1.5 rounded-lg px-3 py-2 ${isCancelled ? 'bg-amber-wash text-amber' : 'bg-red-wash text-red'}`}
    >
      {!isCancelled && <span aria-hidden>✕ </span>}
      {run.closedByRuleAt === null && (
        <span>
          {isCancelled ? 'Cancelled' : isByOutcome ? 'Run' : 'Failed'}
          {!isCancelled && failed && ` at step ${number(failed.step.index + 1)}`}
          {isByOutcome ? ' ' : ': '}
        </span>
      )}
      <bdi className="font-medium [overflow-wrap:anywhere]">{why}</bdi>
      {failed && failed.times > 1 && <span>, {timesInWords(failed.times)}</span>}
      {run.closedByRuleAt !== null && (
        <span className="text-sm">
          {' '}
          {SILENT_CAUSES} The last event came <Time at={run.lastEventAt} />. If more arrive, the run goes on.
        </span>
      )}
      {failure !== null && (
        <button type="button" onClick={onFailure} className="link ml-2 text-sm print:hidden" title="Key: e">
          {run.closedByRuleAt === null ? 'Show where' : 'Show its last error'}
        </button>
      )}
      {failure !== null && run.closedByRuleAt === null && <Causes runId={run.runId} eventId={failure.eventId} />}
    </div>
  )
}

const timesInWords = (times: number) => ['', '', 'twice', 'three times'][times] ?? `${number(times)} times`

/** The first cause, and the frame in the user's own code: often these must be fixed. */
function Causes({ runId, eventId }: { runId: string; eventId: string }) {
  const { place } = route.useRouteContext()
  const { data } = useQuery(eventQuery(place.environment.id, runId, eventId))
  if (!data) return null
  const { eventType, label, payload } = data.event
  const eventFacts = { eventType, label, payload: isObject(payload) ? payload : {} }
  const failure = failureOf(eventFacts) ?? cancellationOf(eventFacts)
  const frame = failure?.stack ? ownFrame(failure.stack) : null
  const lines = failure === null ? [] : [...(frame === null ? [] : [`in ${frame}`]), ...causeLines(failure)]
  return lines.map((line, index) => (
    <p key={index} className="pl-4 text-sm [overflow-wrap:anywhere]">
      <bdi>{line}</bdi>
    </p>
  ))
}

/** Shows missing events. Renders nothing if there are no gaps, or if events have no numbers, such as those of hooks. */
function Arrived({ run: { completeness, status } }: { run: OperatorRun }) {
  const { state, recorders, unnumbered } = completeness
  if (recorders.length === 0 || (state === 'OPEN' && status === 'RUNNING')) return null
  if (state === 'UNKNOWN' && unnumbered > 0) return null
  const text = completenessText(completeness, (iso) => exact(Date.parse(iso)))
  return (
    <Fact name="Arrived">
      <span className={state === 'GAPS' ? 'text-amber' : ''} title={text}>
        {state === 'COMPLETE' ? 'complete' : text}
      </span>
    </Fact>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="tabular max-w-full truncate">
      <dt className="sr-only">{name}</dt>
      <dd className="inline">{children}</dd>
    </div>
  )
}

/** The menu with acts on the run as a whole. */
function RunMenu({ place, run }: { place: Place; run: OperatorRun }) {
  const [open, setOpen] = useState<'stop' | 'erase' | null>(null)
  const params = { environmentId: place.environment.id, runId: run.id }
  const file = `${BASE}/operator/v1/environments/${place.environment.id}/runs/${run.id}/html`
  const isPinned = run.pinnedAt !== null
  const pin = useMutation({
    mutationFn: () => (isPinned ? api.unpinRun({ params }) : api.pinRun({ params })),
  })
  return (
    <>
      <Refused error={pin.error} />
      <Popover label="More" panelClassName="w-64 p-1">
        <MenuLink href={file}>Save as a page</MenuLink>
        <MenuLink href={`${file}?payloads=true`}>Save as a page, with payloads</MenuLink>
        {place.may('approver') && (
          <MenuItem onClick={() => pin.mutate()}>
            {isPinned ? 'Unpin: retention may remove it' : 'Pin: keep it whatever retention says'}
          </MenuItem>
        )}
        {place.may('approver') && run.status === 'RUNNING' && (
          <MenuItem onClick={() => setOpen('stop')}>Stop this run…</MenuItem>
        )}
        {place.may('admin') && <MenuItem onClick={() => setOpen('erase')}>Erase this run…</MenuItem>}
      </Popover>
      {open === 'stop' && (
        <StopDialog
          environmentId={params.environmentId}
          subject={{ scope: 'run', target: run.runId }}
          onClose={() => setOpen(null)}
        />
      )}
      {open === 'erase' && (
        <EraseDialog place={place} subject={{ kind: 'run', id: run.runId }} onClose={() => setOpen(null)} />
      )}
    </>
  )
}
