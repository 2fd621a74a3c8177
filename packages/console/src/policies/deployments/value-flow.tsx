/** Shows whether values of one tool reached another one in recorded runs, like `tacho policies flow`. */
import { flowSentence } from '@tacho/contract/engine/format.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { FlowQuestion, Simulation } from '@tacho/contract/policies/simulation.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { counted, number } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Field, SelectField } from '../../web/ui/field.tsx'
import { Section } from '../../web/ui/section.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { useSimulation } from '../queries.ts'

const DAYS = [1, 7, LIMITS.simulationDaysMax] as const
const RUNS_SHOWN = 10
const EMPTY = { from: '', fromKind: 'tool', to: '', toKind: 'tool', where: '', days: String(LIMITS.simulationDaysMax) }
const KINDS = [
  ['tool', 'the tool'],
  ['label', 'tools labelled'],
] as const

interface Props {
  environment: { id: string; name: string }
  canAsk: boolean
}

export function ValueFlow({ environment, canAsk }: Props) {
  const params = { environmentId: environment.id }
  const [asked, setAsked] = useState(EMPTY)
  const [simulationId, setSimulationId] = useState<string | null>(null)
  const { data } = useSimulation(environment.id, simulationId)
  const set = (change: Partial<typeof EMPTY>) => setAsked({ ...asked, ...change })
  const ask = useMutation({
    mutationFn: () => api.createSimulation({ params, body: questionOf(asked) }),
    onSuccess: ({ id }) => setSimulationId(id),
  })
  const cancel = useMutation({
    mutationFn: (id: string) => api.cancelSimulation({ params: { ...params, simulationId: id } }),
  })
  if (!canAsk) return null
  const isRunning = data?.status === 'QUEUED' || data?.status === 'RUNNING'
  const compiled = asked.where.trim() === '' ? null : compileCondition(asked.where)
  const fault = compiled?.ok === false ? (compiled.faults[0]?.message ?? null) : null
  const isReady = asked.from.trim() !== '' && asked.to.trim() !== '' && fault === null
  return (
    <Section title="Where values went" note={`in the recorded runs of ${environment.name}`}>
      <form
        aria-label="Where values went"
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady && !ask.isPending && !isRunning) ask.mutate()
        }}
      >
        <div className="grid gap-3 sm:grid-cols-2">
          <End
            name="From"
            kind={asked.fromKind}
            value={asked.from}
            example={['read_mail', 'private']}
            onChange={(fromKind, from) => set({ fromKind, from })}
          />
          <End
            name="To"
            kind={asked.toKind}
            value={asked.to}
            example={['send_*', 'external']}
            onChange={(toKind, to) => set({ toKind, to })}
          />
          <Field
            label="Only calls where"
            hint='A condition, or nothing. For example: !tool.input.to.endsWith("@example.com")'
            fault={fault}
            className="sm:col-span-2"
            value={asked.where}
            maxLength={LIMITS.textChars}
            spellCheck={false}
            onChange={({ target }) => set({ where: target.value })}
          />
        </div>
        <div className="mt-3 flex flex-wrap items-end gap-2">
          <SelectField
            label="Period"
            value={asked.days}
            options={DAYS.map((days) => [String(days), days === 1 ? 'The last day' : `The last ${days} days`])}
            onChange={(days) => set({ days })}
          />
          <Button type="submit" className="h-10" busy={ask.isPending || isRunning} disabled={!isReady}>
            Ask
          </Button>
          {isRunning && (
            <Button look="quiet" className="h-10" onClick={() => cancel.mutate(data.id)}>
              Cancel
            </Button>
          )}
        </div>
        <Refused error={ask.error ?? cancel.error} className="mt-2" />
      </form>
      <div role="status" className="mt-3 text-sm">
        {data && isRunning && (
          <p className="tabular text-soft">
            {number(data.scanned)}
            {data.total === null ? '' : ` of ${number(data.total)}`} calls examined
          </p>
        )}
        {data?.status === 'FAILED' && <p className="text-red">It failed: {data.error}</p>}
        {data?.status === 'CANCELLED' && <p className="text-soft">It was cancelled.</p>}
        {data && <Answer simulation={data} />}
      </div>
    </Section>
  )
}

interface EndProps {
  name: string
  kind: string
  value: string
  /** Examples of a tool and of a label. */
  example: readonly [string, string]
  onChange: (kind: string, value: string) => void
}

/** A field for a tool, or for a label of tools. */
function End({ name, kind, value, example, onChange }: EndProps) {
  return (
    <div className="flex items-end gap-2">
      <SelectField label={name} value={kind} options={KINDS} onChange={(chosen) => onChange(chosen, value)} />
      <Field
        label={`${name}: name`}
        className="min-w-0 flex-1"
        placeholder={example[kind === 'tool' ? 0 : 1]}
        maxLength={kind === 'tool' ? LIMITS.textChars : LIMITS.toolLabelChars}
        autoComplete="off"
        spellCheck={false}
        value={value}
        onChange={({ target }) => onChange(kind, target.value)}
      />
    </div>
  )
}

function questionOf({ from, fromKind, to, toKind, where, days }: typeof EMPTY) {
  const flow: FlowQuestion = {
    ...(fromKind === 'tool' ? { fromTool: from.trim() } : { fromLabel: from.trim() }),
    ...(toKind === 'tool' ? { toTool: to.trim() } : { toLabel: to.trim() }),
  }
  const condition = where.trim() === '' ? 'true' : where
  return { condition, action: 'ALLOW', severity: 'LOW', onError: 'ignore', flow, days: Number(days) } as const
}

const route = getRouteApi('/w/$workspace/$environment')

function Answer({ simulation }: { simulation: Simulation }) {
  const params = route.useParams()
  const { flow, past, hitRuns = [], warnings = [] } = simulation.result ?? {}
  if (!flow) return null
  const names = past?.unlabelled.slice(0, 5).join(', ') ?? ''
  return (
    <>
      {warnings.map(({ code, field, message }) => (
        <p key={`${code} ${field}`} className="text-amber">
          ! {message}
        </p>
      ))}
      <p className={`font-medium [overflow-wrap:anywhere] ${flow.reached > 0 ? 'text-amber' : ''}`}>
        <ShownText text={flowSentence(simulation, flow)} />
      </p>
      {flow.unknown > 0 && (
        <p className="text-amber">
          ! {counted(flow.unknown, 'call')} unknown: what they depend on is masked, shortened or not recorded.
        </p>
      )}
      {past && past.tools > 0 && (
        <p className="text-soft">
          Labels cover {Math.floor((past.labelledTools / past.tools) * 100)} % of the tools (
          {number(past.labelledTools)} of {number(past.tools)}).
          {names !== '' && ` Without labels: ${names}${past.unlabelled.length > 5 ? ', …' : '.'}`}
        </p>
      )}
      <ul>
        {hitRuns.slice(0, RUNS_SHOWN).map(({ id, runId, eventId, toolName }) => (
          <li key={id} className="flex gap-3 py-0.5">
            <Link
              to="/w/$workspace/$environment/runs/$runId"
              params={{ ...params, runId }}
              search={{ step: eventId }}
              className="link min-w-0 truncate"
            >
              <bdi>{runId}</bdi>
            </Link>
            <bdi className="truncate font-mono text-soft">{toolName}</bdi>
          </li>
        ))}
      </ul>
    </>
  )
}
