import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { useMemo, useState } from 'react'
import { Button } from '../../web/ui/button.tsx'
import { duration } from '../../web/text/format.ts'
import { changed, Choice, TextFilter, TextFilters } from '../../web/ui/filters.tsx'
import { RangeChoice } from '../../web/ui/range-choice.tsx'
import { NO_RANGE } from '../../web/address.ts'
import { Facets } from './facets.tsx'
import { statusWord } from '../run-status.tsx'
import { COST_PATTERN, isOpen, RUN_ORDERS, STATUS_FILTERS, type RunSort, type RunListAddress } from '../address.ts'

export const SEARCH_ID = 'search-runs'
const LENGTHS = [10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000]
const OWNERS = [
  ['agent', 'Agent', 'Agent'],
  ['sessionId', 'Session', 'Session'],
] as const
const NAMED = [
  ['tool', 'Tool', 'Tool'],
  ['model', 'Model', 'Model'],
  ['policyId', 'Policy', 'Policy'],
] as const
const LABELS = [
  ['user', 'End user', 'End user'],
  ['tag', 'Tag', 'Tag'],
  ['metadata', 'Metadata, such as task=refund', 'task=refund'],
] as const
const MORE = [
  'user',
  'tag',
  'metadata',
  'loops',
  'tool',
  'model',
  'policyId',
  'minCost',
  'minLengthMs',
  'hasErrors',
  'hasApprovals',
  'completeness',
  'score',
  'unscored',
  'share',
] as const

/** An empty text or undefined leaves its filter out. */
type Change = { [Name in keyof RunListAddress]?: RunListAddress[Name] | string | undefined }

interface Props {
  search: RunListAddress
  /** The runs in the list. Their names are suggested. */
  items: readonly OperatorRun[]
  onChange: (search: RunListAddress) => void
}

export function RunFilters({ search, items, onChange }: Props) {
  const set = (change: Change) => onChange(changed(search, change))
  const count = MORE.filter((name) => search[name] !== undefined).length
  const [isMore, setMore] = useState(count > 0)
  const { columns: chosenColumns, ...filter } = search
  return (
    <div role="search" className="flex flex-wrap items-center gap-2 py-3">
      <TextFilter
        id={SEARCH_ID}
        label="Search runs"
        placeholder="Run, session or agent"
        className="w-full sm:w-48"
        value={search.q}
        onChange={(q) => set({ q })}
      />
      <Choice
        label="Status"
        all="Any status"
        value={search.status}
        options={STATUS_FILTERS.map((status) => [status, status === 'STALLED' ? 'Stalled' : statusWord(status)])}
        onChange={(status) => set({ status, ...(isOpen(status) && { order: undefined }) })}
      />
      <RangeChoice
        label="Started"
        range={search}
        byDefault={null}
        onChange={(range) => set({ ...NO_RANGE, ...range })}
      />
      <Order search={search} onChange={set} />
      <TextFilters
        filters={OWNERS}
        search={search}
        onChange={set}
        // The first field finds both: on a phone, the list needs the room.
        className={`w-28 ${isMore || OWNERS.some(([name]) => search[name] !== undefined) ? '' : 'max-sm:hidden'}`}
      />
      {search.promptVersionId !== undefined && (
        <span className="text-sm text-soft">
          prompt version <span className="font-mono">{search.promptVersionId.slice(0, 8)}</span>
        </span>
      )}
      <Button look="quiet" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
        {isMore ? 'Fewer filters' : count > 0 ? `More filters (${count})` : 'More filters'}
      </Button>
      {Object.keys(filter).length > 0 && (
        <Button look="quiet" onClick={() => onChange(chosenColumns === undefined ? {} : { columns: chosenColumns })}>
          Clear
        </Button>
      )}
      {isMore && <MoreFilters search={search} items={items} set={set} />}
    </div>
  )
}

const ORDER_WORDS: Record<RunSort, string> = {
  cost: 'Highest cost',
  length: 'Longest',
  tokens: 'Most tokens',
  failures: 'Most errors',
}
const SCORE_ORDERS = [
  ['lowest', 'Lowest score first'],
  ['highest', 'Highest score first'],
] as const

function Order({ search, onChange }: { search: RunListAddress; onChange: (change: Change) => void }) {
  const { order: chosen, score, scoreOrder, status } = search
  const sorts = isOpen(status) ? [] : RUN_ORDERS.map((one) => [one, ORDER_WORDS[one]] as const)
  const options = [...sorts, ...(score === undefined ? [] : SCORE_ORDERS)]
  if (options.length === 0) return null
  return (
    <Choice
      label="Order"
      all="Newest first"
      value={chosen ?? (score === undefined ? undefined : scoreOrder)}
      options={options}
      onChange={(order) => {
        const known = RUN_ORDERS.find((one) => one === order)
        onChange({ order: known, scoreOrder: known ? undefined : order })
      }}
    />
  )
}

interface MoreProps extends Pick<Props, 'search' | 'items'> {
  set: (change: Change) => void
}

/** What a run was, found run by run. */
function MoreFilters({ search, items, set }: MoreProps) {
  const known = useMemo(() => {
    const names = (of: (run: OperatorRun) => readonly string[]) => [...new Set(items.flatMap(of))].toSorted()
    return {
      tool: names(({ tools }) => tools),
      model: names(({ models }) => models),
      policyId: names(({ policyIds }) => policyIds),
    }
  }, [items])
  return (
    <div className="flex w-full flex-wrap items-center gap-2">
      <TextFilters filters={NAMED} search={search} suggestions={known} onChange={set} />
      <TextFilters filters={LABELS} search={search} onChange={set} />
      <TextFilter
        label="Cost at least, in US dollars"
        placeholder="Cost, from $"
        className="w-28"
        pattern={COST_PATTERN}
        value={search.minCost?.toString()}
        onChange={(minCost) => set({ minCost: Number(minCost) || undefined })}
      />
      <Choice
        label="Length at least"
        all="Any length"
        value={search.minLengthMs?.toString()}
        options={lengths(search.minLengthMs).map((ms) => [String(ms), `From ${duration(ms)}`])}
        onChange={(ms) => set({ minLengthMs: Number(ms) || undefined })}
      />
      <ScoreFilters search={search} items={items} set={set} />
      <Check label="With errors" isOn={search.hasErrors === true} onChange={(hasErrors) => set({ hasErrors })} />
      <Check
        label="With approvals"
        isOn={search.hasApprovals === true}
        onChange={(hasApprovals) => set({ hasApprovals })}
      />
      <Check
        label="With missing events"
        isOn={search.completeness === 'GAPS'}
        onChange={(isOn) => set({ completeness: isOn && 'GAPS' })}
      />
      <Check label="With loops" isOn={search.loops === 'true'} onChange={(isOn) => set({ loops: isOn && 'true' })} />
      <Facets search={search} onChange={set} />
    </div>
  )
}

/** What `readScoreFilter` reads. */
const SCORE_PATTERN = String.raw`[^<>=]{1,64}((<=|>=|<|>)\s*-?[0-9]+([.][0-9]+)?\s*|=.+)?`

/** By what was said of the runs: `accuracy<0.5`. */
function ScoreFilters({ search, items, set }: MoreProps) {
  const known = useMemo(
    () => [...new Set(items.flatMap(({ scores }) => scores.map(({ name }) => name)))].toSorted(),
    [items],
  )
  return (
    <>
      <TextFilter
        label="Score, such as accuracy<0.5"
        placeholder="Score, accuracy<0.5"
        className="w-44"
        pattern={SCORE_PATTERN}
        value={search.score}
        suggestions={known}
        onChange={(score) => set({ score, ...(score === '' && { scoreOrder: undefined }) })}
      />
      {search.unscored !== undefined && (
        <TextFilter
          label="Without a score named"
          placeholder="Without score"
          value={search.unscored}
          onChange={(unscored) => set({ unscored })}
        />
      )}
    </>
  )
}

/** The offered lengths, and the one in the address. */
function lengths(chosen: number | undefined): number[] {
  return chosen === undefined || LENGTHS.includes(chosen) ? LENGTHS : [...LENGTHS, chosen]
}

function Check({
  label,
  isOn,
  onChange,
}: {
  label: string
  isOn: boolean
  onChange: (isOn: true | undefined) => void
}) {
  return (
    <label className="field flex items-center gap-2 whitespace-nowrap">
      <input
        type="checkbox"
        checked={isOn}
        onChange={(event) => onChange(event.target.checked || undefined)}
        className="accent-accent"
      />
      {label}
    </label>
  )
}
