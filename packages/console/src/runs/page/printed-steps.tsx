/** All steps, for printing: lists on screen contain only visible rows. */
import { stepName } from './notes.ts'
import { clock, duration, exact, number } from '../../web/text/format.ts'
import { useIsPrinting } from '../../web/ui/printing.ts'
import { EventType } from '../event-type.tsx'
import { ProblemMark, useProblemMarks } from './problem-mark.tsx'
import type { Problem } from './problems.ts'
import type { Step } from '../queries.ts'

interface Props {
  runId: string
  /** The rows of the view, in its order. */
  steps: readonly Step[]
  total: number
  problems: readonly Problem[]
}

export function PrintedSteps(props: Props) {
  return useIsPrinting() ? <Printed {...props} /> : null
}

function Printed({ runId, steps, total, problems }: Props) {
  const marks = useProblemMarks(problems)
  const shown =
    steps.length === total ? `All ${number(total)} steps` : `${number(steps.length)} of ${number(total)} steps`
  return (
    <section className="hidden px-3 print:block">
      <p className="py-2 text-sm">
        {shown}
        {timesText(steps)}, without payloads.{' '}
        <code className="font-mono">tacho runs export {runId} --html run.html --payloads</code> writes a page with them.
      </p>
      <table className="tabular w-full text-left text-xs">
        <thead>
          <tr>
            <th>#</th>
            <th>Time</th>
            <th>Type</th>
            <th>Label</th>
            <th className="text-right">Gap</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={step.eventId} className="break-inside-avoid border-t border-line align-top">
              <td className="pr-2">{number(step.index + 1)}</td>
              <td className="pr-2">{clock(step.time)}</td>
              <td className="pr-2">
                <EventType type={step.eventType} />
              </td>
              <td className="pr-2 break-words">
                <bdi>{stepName(step)}</bdi> <ProblemMark problem={marks.get(step.eventId)} />
              </td>
              <td className="text-right">{duration(step.gap)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** The period of the steps, with its date, because times alone would be ambiguous. */
function timesText(steps: readonly Step[]): string {
  if (steps.length === 0) return ''
  const times = steps.map(({ time }) => time)
  // `Math.min(...times)` could exceed the argument limit: a run may have 30,000 steps.
  const from = times.reduce((a, b) => Math.min(a, b))
  const to = times.reduce((a, b) => Math.max(a, b))
  return `, ${exact(from)} to ${exact(to)}`
}
