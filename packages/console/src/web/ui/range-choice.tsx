/** A control to choose the period of a page. The address contains the choice. */
import { useState } from 'react'
import { Field } from './field.tsx'
import { Choice } from './filters.tsx'
import { FormDialog } from './form-dialog.tsx'
import { minuteOfDay } from '../text/format.ts'
import { orDefault, PERIODS, type Range, type Since } from '../address.ts'

const WORDS: Record<Since, string> = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
  '365d': 'Last year',
}
const OPTIONS = (Object.keys(PERIODS) as Since[]).map((since) => [since, WORDS[since]] as const)
const EXACT = 'exact'
const OTHER = 'other'

/** A range in words: `Last 7 days`, or `Nov 3, 14:00 to Nov 4, 09:00`. */
export function rangeText({ since, from, to }: Range): string {
  if (since !== undefined) return WORDS[since]
  const [start, end] = [from, to].map((time) => time && minuteOfDay(Date.parse(time)))
  if (start && end) return `${start} to ${end}`
  return start ? `Since ${start}` : end ? `Until ${end}` : 'Any time'
}

/** The period before a range in words, such as `the 7 days before`. */
export function beforeText(range: Range, byDefault: Since): string {
  const { since } = orDefault(range, byDefault)
  return since === undefined ? 'the same time before' : `the ${WORDS[since].replace(/^Last /, '')} before`
}

interface Props {
  label: string
  range: Range
  /** The default period of the page; null: any time. */
  byDefault: Since | null
  onChange: (range: Range) => void
}

export function RangeChoice({ label, range, byDefault, onChange }: Props) {
  const [isAsking, setAsking] = useState(false)
  const isExact = range.from !== undefined || range.to !== undefined
  const value = isExact ? EXACT : (range.since ?? byDefault ?? undefined)
  const exact = isExact ? [[EXACT, rangeText(range)] as const] : []
  return (
    <>
      <Choice
        label={label}
        {...(byDefault === null && { all: 'Any time' })}
        value={value}
        options={[...OPTIONS, ...exact, [OTHER, 'From … to …']]}
        onChange={(chosen) => {
          if (chosen === OTHER) setAsking(true)
          else if (chosen !== EXACT) onChange(chosen === '' ? {} : { since: chosen as Since })
        }}
        className="max-w-full"
      />
      {isAsking && (
        <ExactDialog
          range={range}
          onChange={(chosen) => {
            setAsking(false)
            onChange(chosen)
          }}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  )
}

interface DialogProps {
  range: Range
  onChange: (range: Range) => void
  onClose: () => void
}

function ExactDialog({ range, onChange, onClose }: DialogProps) {
  const [from, setFrom] = useState(localText(range.from))
  const [to, setTo] = useState(localText(range.to))
  const isBackward = from !== '' && to !== '' && from >= to
  return (
    <FormDialog
      title="From and to"
      act="Show"
      isReady={(from !== '' || to !== '') && !isBackward}
      isBusy={false}
      error={null}
      onSubmit={() => onChange({ ...(from && { from: isoOf(from) }), ...(to && { to: isoOf(to) }) })}
      onClose={onClose}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <Field
          label="From"
          type="datetime-local"
          value={from}
          onChange={({ target }) => setFrom(target.value)}
          hint="In the time zone of this browser."
        />
        <Field
          label="To"
          type="datetime-local"
          value={to}
          onChange={({ target }) => setTo(target.value)}
          fault={isBackward ? 'To must be after From.' : null}
          hint="Empty: until now."
        />
      </div>
    </FormDialog>
  )
}

/** A local time without a zone, in the form of the browser's time field. */
function localText(iso: string | undefined): string {
  if (iso === undefined) return ''
  const time = new Date(iso)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

const isoOf = (local: string): string => new Date(local).toISOString()
