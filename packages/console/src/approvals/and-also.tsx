/** The line below a decision that offers a grant for later calls. Nothing is allowed unless a person chooses it. */
import type { NewGrant } from '@tacho/contract/approvals/grant.ts'
import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import type { GrantScope } from '@tacho/contract/engine/words.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { parseRecorded } from '@tacho/contract/record/json-text.ts'
import { callOf } from '../policies/draft.ts'
import { Choice } from '../web/ui/filters.tsx'

/** The grant that a person chooses; null: only this call. */
export type Also = { scope: GrantScope; condition: string; minutes: number; uses: number } | null

const NAMES: Record<GrantScope, string> = {
  input: 'the same input again in this run',
  tool: 'this tool in this run',
  condition: 'this tool of this agent, where …',
}
const LENGTHS: readonly (readonly [minutes: number, name: string])[] = [
  [15, '15 minutes'],
  [LIMITS.grantMinutes, '1 hour'],
  [8 * 60, '8 hours'],
  [LIMITS.grantRunMinutesMax, '1 day'],
  [LIMITS.grantAgentMinutesMax, '7 days'],
]
const USES = [5, LIMITS.grantUses, 100, LIMITS.grantUsesMax]

export function bodyOfAlso({ scope, condition, minutes, uses }: NonNullable<Also>): NewGrant {
  return { scope, minutes, uses, ...(scope === 'condition' && { condition }) }
}

interface Props {
  approval: ApprovalDetail
  also: Also
  onChange: (also: Also) => void
}

export function AndAlso({ approval, also, onChange }: Props) {
  const isChecked = approval.inputPreview?.check.result === 'matches'
  const offered = approval.mayGrant?.scopes.filter((scope) => scope !== 'condition' || isChecked) ?? []
  if (offered.length === 0) return null
  const choose = (word: string) => {
    const scope = offered.find((one) => one === word)
    const condition = scope === 'condition' ? conditionLike(approval) : ''
    const bounds = { minutes: LIMITS.grantMinutes, uses: LIMITS.grantUses }
    onChange(scope === undefined ? null : { scope, condition, ...bounds })
  }
  const lengths = LENGTHS.filter(([minutes]) => also?.scope === 'condition' || minutes <= LIMITS.grantRunMinutesMax)
  return (
    <div className="flex w-full flex-wrap items-center gap-2 text-sm">
      <span aria-hidden className="text-soft">
        and also
      </span>
      <Choice
        label="And also allow"
        value={also?.scope}
        all="nothing else"
        options={offered.map((scope) => [scope, NAMES[scope]])}
        onChange={choose}
        className="h-9 min-w-60 flex-1 text-sm sm:min-w-0 sm:flex-none"
      />
      {also !== null && (
        <>
          <Choice
            label="For how long"
            value={String(also.minutes)}
            options={lengths.map(([minutes, name]) => [String(minutes), `for ${name}`])}
            onChange={(minutes) => onChange({ ...also, minutes: Number(minutes) })}
            className="h-9 text-sm"
          />
          <Choice
            label="How many calls"
            value={String(also.uses)}
            options={USES.map((uses) => [String(uses), `at most ${uses} calls`])}
            onChange={(uses) => onChange({ ...also, uses: Number(uses) })}
            className="h-9 text-sm"
          />
        </>
      )}
      {also?.scope === 'condition' && (
        <input
          aria-label="Condition"
          required
          value={also.condition}
          onChange={(event) => onChange({ ...also, condition: event.target.value })}
          spellCheck={false}
          placeholder="tool.input.amount <= 50.0"
          className="field h-10 w-full font-mono text-sm"
        />
      )}
    </div>
  )
}

/** A condition that is true for this call: numbers up to those of the call, and equal texts. */
function conditionLike({ toolName, inputPreview }: ApprovalDetail): string {
  if (inputPreview === null || inputPreview.isTruncated) return ''
  const sealed = new Set(inputPreview.check.sealedAt?.map((pointer) => pointer.split('/')[1] ?? ''))
  const input = parseRecorded(inputPreview.json)
  const readable = Object.entries(input ?? {}).filter(([name]) => !sealed.has(name))
  const call = callOf({ toolName, input: Object.fromEntries(readable) })
  return call?.fields.map((field) => field.replace(' >= ', ' <= ')).join(' && ') ?? ''
}
