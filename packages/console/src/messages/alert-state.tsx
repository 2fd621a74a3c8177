import type { Alert, AlertStatus } from '@tacho/contract/messages/alert.ts'
import { Chip, type Tone } from '../web/ui/chip.tsx'
import { KINDS, shareOf, unpricedNote, valueText } from './alert-rule.ts'

const LOOKS: Record<AlertStatus, { tone: Tone; word: string; sign: string; note: string }> = {
  OK: { tone: 'green', word: 'OK', sign: '✓', note: 'The condition does not hold' },
  PENDING: { tone: 'amber', word: 'Pending', sign: '…', note: 'The condition holds, but not yet long enough' },
  FIRING: { tone: 'red', word: 'Firing', sign: '!', note: 'The condition holds' },
}

export function AlertState({ alert }: { alert: Alert }) {
  if (alert.kind === 'budget') return <BudgetState alert={alert} />
  if (alert.checkedAt === null) return <Chip>Not checked yet</Chip>
  const { tone, word, sign, note } = LOOKS[alert.status]
  return (
    <span title={note}>
      <Chip tone={tone}>
        <span aria-hidden>{sign}</span>
        {word}
      </Chip>
    </span>
  )
}

function BudgetState({ alert }: { alert: Alert }) {
  const share = Math.floor(shareOf(alert))
  const tone = share >= 100 ? 'red' : share >= 80 ? 'amber' : 'green'
  return (
    <Chip tone={tone}>
      {share >= 100 && <span aria-hidden>!</span>}
      {usedText(alert)}
    </Chip>
  )
}

function usedText(alert: Alert): string {
  const share = `${Math.floor(shareOf(alert))} % used`
  return alert.unpricedCalls > 0 ? `at least ${share}` : share
}

/** How much of a budget is used, with its three marks. */
export function BudgetBar({ alert }: { alert: Alert }) {
  const share = shareOf(alert)
  const fill = share >= 100 ? 'bg-red' : share >= 80 ? 'bg-amber' : 'bg-green'
  const { format } = KINDS.budget
  return (
    <div className="flex items-center gap-3">
      <div
        role="meter"
        aria-label={alert.name}
        aria-valuenow={Math.min(100, Math.round(share))}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuetext={usedText(alert)}
        className="relative h-2 w-full max-w-60 min-w-24 overflow-hidden rounded-full bg-hover"
      >
        <div className={`h-full ${fill}`} style={{ width: `${Math.min(100, share)}%` }} />
        {[50, 80].map((mark) => (
          <span key={mark} className="absolute inset-y-0 w-px bg-edge" style={{ left: `${mark}%` }} />
        ))}
      </div>
      <span className="tabular whitespace-nowrap text-soft" title={unpricedNote(alert)}>
        {alert.value === null ? format(0) : valueText(alert)} of {format(alert.threshold)}
      </span>
    </div>
  )
}
