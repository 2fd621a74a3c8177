import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { markOf, seriesOf, shownWindow, sumOf, timesOf } from '../usage/series.ts'
import { MarkTable, plotMarks, useMarks } from '../../policies/deployments/marks.tsx'
import { compact, money, number } from '../../web/text/format.ts'
import { Plot } from '../../web/ui/plot.tsx'
import { beforeText, rangeText } from '../../web/ui/range-choice.tsx'
import { orDefault, type Range, stepAt, zoneText } from '../../web/address.ts'
import { Section } from '../../web/ui/section.tsx'
import { Skeleton } from '../../web/ui/states.tsx'
import { Tabs } from '../../web/ui/tabs.tsx'
import { AGENT_SINCE, useAgentUsage } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/agents/$agent')

const MEASURES = [
  ['cost', 'Cost'],
  ['tokens', 'Tokens'],
  ['outcomes', 'Runs'],
] as const
const FORMATS = { cost: money, tokens: compact, outcomes: number }

export interface UsageOfTimeProps {
  environmentId: string
  /** Internal id of the agent. */
  agentId: string
  agent: string
  range: Range
}

/** Cost, tokens and runs of an agent over a period, compared with the previous one. */
export function UsageOfTime({ environmentId, agentId, agent, range }: UsageOfTimeProps) {
  const params = route.useParams()
  const navigate = useNavigate()
  const [show, setShow] = useState<(typeof MEASURES)[number][0]>('cost')
  const { data } = useAgentUsage(environmentId, agentId, range)
  const open = (from: number, to: number) => {
    const search = { agent, from: new Date(from).toISOString(), to: new Date(to).toISOString() }
    void navigate({ to: '/w/$workspace/$environment/runs', params, search })
  }
  return (
    <Section title={rangeText(orDefault(range, AGENT_SINCE))}>
      <Tabs label="Measure" value={show} options={MEASURES} onChange={setShow} />
      <div className="mt-3">
        {data ? (
          <UsagePlot environmentId={environmentId} data={data} show={show} range={range} onPick={open} />
        ) : (
          <Skeleton className="h-72" />
        )}
      </div>
    </Section>
  )
}

interface UsagePlotProps {
  environmentId: string
  data: NonNullable<ReturnType<typeof useAgentUsage>['data']>
  show: keyof typeof FORMATS
  range: Range
  onPick: (from: number, to: number) => void
}

function UsagePlot({ environmentId, data: { window, points, before }, show, range, onPick }: UsagePlotProps) {
  const marks = useMarks(environmentId, window)
  const onAxis = useMemo(() => plotMarks(marks), [marks])
  const { shown, times, series } = useMemo(() => {
    const shown = shownWindow(window, show)
    return { shown, times: timesOf(shown), series: seriesOf(points, [], shown, show) }
  }, [window, points, show])
  return (
    <>
      <Plot
        label={`${show} over time`}
        unit={MEASURES.find(([one]) => one === show)?.[1] ?? show}
        times={times}
        stepSeconds={shown.stepMs / 1_000}
        series={series}
        format={FORMATS[show]}
        before={{ sum: sumOf(before, show) ?? 0, mark: markOf(before, show), period: beforeText(range, AGENT_SINCE) }}
        {...onAxis}
        onPick={(seconds) => onPick(seconds * 1_000, stepAt(shown, seconds * 1_000).end)}
      />
      <MarkTable marks={marks} />
      <p className="mt-1 text-sm text-soft">{zoneText(window)}</p>
    </>
  )
}
