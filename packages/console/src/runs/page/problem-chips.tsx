import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { STATES } from '../../web/text/state-styles.ts'
import { TONES } from '../../web/ui/chip.tsx'
import { counted, number } from '../../web/text/format.ts'
import { useIssuesOfRun, type Problem } from './problems.ts'
import type { Step } from '../queries.ts'

const route = getRouteApi('/w/$workspace/$environment/runs/$runId')
const SHOWN = 8
const ISSUES_SHOWN = 2

interface Props {
  environmentId: string
  runId: string
  problems: readonly Problem[]
  selected: Step | null
  onSelect: (eventId: string) => void
}

/** The problems of the run, each with a link to its step. */
export function ProblemChips({ environmentId, runId, problems, selected, onSelect }: Props) {
  const params = route.useParams()
  const issues = useIssuesOfRun(environmentId, runId).data?.items ?? []
  const [isOpen, setOpen] = useState(false)
  const groups = useMemo(() => groupsOf(problems), [problems])
  const shown = groups.slice(0, SHOWN)
  if (groups.length === 0 && issues.length === 0) return null
  return (
    <div
      role="group"
      aria-label="Problems"
      // On a phone, one line that scrolls, because the steps need the room.
      className="mt-2 flex items-center gap-1.5 max-sm:overflow-x-auto max-sm:p-0.5 sm:flex-wrap"
    >
      {shown.map(({ is, text, why, eventId, all, isAlone }) => {
        const at = all.findIndex((one) => one.eventId === selected?.eventId)
        return (
          <button
            key={eventId}
            type="button"
            aria-pressed={at !== -1}
            title={why === '' ? undefined : why}
            // Each click selects the next problem of this kind.
            onClick={() => onSelect(all[(at + 1) % all.length]?.eventId ?? eventId)}
            className={`h-6 max-w-72 shrink-0 truncate rounded-full px-2.5 text-xs font-medium hover:brightness-95 aria-pressed:outline-2 ${TONES[STATES[is][0]]}`}
          >
            <span aria-hidden>{STATES[is][1]} </span>
            <bdi>{text}</bdi>
            {!isAlone && why !== '' && (
              <span className="font-normal">
                : <bdi>{why}</bdi>
              </span>
            )}
            {all.length > 1 && <span className="tabular"> ×{number(all.length)}</span>}
          </button>
        )
      })}
      {groups.length > SHOWN && (
        <span className="shrink-0 text-xs text-soft">and {number(groups.length - SHOWN)} more</span>
      )}
      {issues.slice(0, isOpen ? issues.length : ISSUES_SHOWN).map(({ id, title }) => (
        <Link
          key={id}
          to="/w/$workspace/$environment/issues/$issueId"
          params={{ workspace: params.workspace, environment: params.environment, issueId: id }}
          title={title}
          className="max-w-72 shrink-0 truncate rounded-full border border-edge px-2.5 text-xs leading-6 text-soft hover:bg-hover"
        >
          Issue: <bdi>{title}</bdi>
        </Link>
      ))}
      {!isOpen && issues.length > ISSUES_SHOWN && (
        <button type="button" onClick={() => setOpen(true)} className="link min-h-6 shrink-0 text-xs">
          and {counted(issues.length - ISSUES_SHOWN, 'more issue')}
        </button>
      )}
    </div>
  )
}

/** Groups repeated equal problems into one chip. */
function groupsOf(problems: readonly Problem[]) {
  const groups = Map.groupBy(problems, ({ text, why }) => `${text}\n${why}`)
  const chipGroups = [...groups.values()].flatMap((all) => (all[0] ? [{ ...all[0], all }] : []))
  const byText = Map.groupBy(chipGroups, ({ text }) => text)
  // Problems with the same name also need their reasons.
  return chipGroups.map((one) => ({ ...one, isAlone: byText.get(one.text)?.length === 1 }))
}
