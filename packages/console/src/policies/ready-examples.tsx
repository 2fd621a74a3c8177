/** Decides the examples of a ready set in the page, by its policies and the labels as edited. */
import { StateText } from '../web/ui/state.tsx'
import { decideExample, type ExampleCall } from '@tacho/policy/history/example-call.ts'
import { useMemo } from 'react'
import { number } from '../web/text/format.ts'
import { Section } from '../web/ui/section.tsx'
import { ActionChip } from './action-chip.tsx'
import { rulesOf, type LabelDraft } from './deployments/label-editor.tsx'
import type { ReadyPolicy, ReadySet } from './ready-set.ts'

export function ReadyExamples({ set, rules }: { set: ReadySet; rules: readonly LabelDraft[] }) {
  const decided = useMemo(() => {
    const policies = Object.entries(set.policies).map(([policyId, policy]) => ({
      policyId,
      version: '1',
      ...policy,
      name: policy.name ?? policyId,
    }))
    const now = Date.now()
    const labels = rulesOf(rules)
    return set.examples
      .map((example) => renamed(example, rules))
      .map((example) => ({ example, result: decideExample(example, { policies, labels }, now) }))
  }, [set, rules])
  const passed = decided.filter(({ result }) => result.ok).length
  return (
    <Section title="Examples" note={`${number(passed)} of ${number(decided.length)} decided as expected`}>
      <ul aria-label="Examples">
        {decided.map(({ example, result }, at) => (
          <li key={at} className="border-b border-line py-1.5 text-sm last:border-0">
            <details>
              <summary className="flex cursor-pointer flex-wrap items-center gap-x-2">
                <StateText is={result.ok ? 'OK' : 'FAILED'} />
                <span className="min-w-0 flex-1">{example.name ?? example.tool}</span>
                <ActionChip action={result.action as ReadyPolicy['action']} />
              </summary>
              {!result.ok && (
                <p className="text-red">
                  Expected {example.expect}
                  {example.policies && ` by ${example.policies.join(', ') || 'no policy'}`}. Do the labels name its
                  tools?
                </p>
              )}
              <ol className="mt-1 font-mono text-xs text-soft [overflow-wrap:anywhere]">
                {example.past?.map((step, index) => (
                  <li key={index}>
                    {step.said === undefined
                      ? `${step.tool} → ${short(step.output ?? step.error)}`
                      : `User: ${short(step.said)}`}
                  </li>
                ))}
                <li className="text-ink">{callText(example)}</li>
              </ol>
            </details>
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** Renames the tools of an example as the person renamed them. */
function renamed(example: ReadySet['examples'][number], rules: readonly LabelDraft[]): ReadySet['examples'][number] {
  const nameOf = (tool: string): string => {
    for (const { was = '', tool: now } of rules) {
      const [start = '', end] = was.split('*')
      if (was === tool) return now.trim()
      if (end === undefined || !tool.startsWith(start) || !tool.endsWith(end)) continue
      return now.trim().replace('*', tool.slice(start.length, tool.length - end.length))
    }
    return tool
  }
  const past = example.past?.map((step) => (step.tool === undefined ? step : { ...step, tool: nameOf(step.tool) }))
  return { ...example, tool: nameOf(example.tool), ...(past && { past }) }
}

const SHOWN_CHARS = 300

const short = (value: unknown): string =>
  (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).slice(0, SHOWN_CHARS)

const callText = ({ tool, input }: ExampleCall): string => `${tool} ${input === undefined ? '' : short(input)}`
