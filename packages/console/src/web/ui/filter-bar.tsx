/** The filter fields above a list, made from its table of filters. The address contains their values. */
import { AMOUNT_PATTERN, type FilterRow } from '@tacho/contract/web/filter.ts'
import { useState, type ReactNode } from 'react'
import { NO_RANGE, readRange } from '../address.ts'
import { duration } from '../text/format.ts'
import { Button } from './button.tsx'
import { changed, Choice, TextFilter } from './filters.tsx'
import { RangeChoice } from './range-choice.tsx'

interface FieldsProps<Search extends object> {
  filters: Readonly<Record<string, FilterRow>>
  /** Filters to show. Default: all. */
  names?: readonly string[]
  search: Search
  onChange: (search: Search) => void
  /** Id of the first field. */
  id?: string
  /** Widths of text fields, as classes; '' for the default width. */
  widths?: Readonly<Record<string, string>>
  /** Suggestions for text fields. */
  suggestions?: Readonly<Record<string, readonly string[]>>
  /** The label of a value in a select field. */
  wordOf?: (value: string) => string
  /** Own fields of the page, by filter name. */
  instead?: Readonly<Record<string, ReactNode>>
}

export function FilterFields<Search extends object>({ filters, names, ...props }: FieldsProps<Search>) {
  const shown = names ?? Object.keys(filters).filter((name) => filters[name]?.field)
  return shown.map((name, index) => (
    <FilterField key={name} name={name} row={filters[name]!} {...props} {...(index > 0 && { id: undefined })} />
  ))
}

interface FieldProps<Search extends object> extends Omit<FieldsProps<Search>, 'filters' | 'names' | 'id'> {
  name: string
  row: FilterRow
  id?: string | undefined
}

function FilterField<Search extends object>(props: FieldProps<Search>) {
  const { name, row, search, onChange, id, widths = {}, suggestions, wordOf, instead } = props
  const { label, placeholder, all, words, offered = [] } = row.field ?? { label: name }
  const address = row.address ?? name
  const value: unknown = search[address as keyof Search]
  const set = (change: object) => onChange(changed(search, change))
  if (instead && Object.hasOwn(instead, name)) return instead[name]
  switch (row.kind) {
    case 'time':
      return (
        <RangeChoice
          label={label}
          range={readRange(search)}
          byDefault={null}
          onChange={(range) => set({ ...NO_RANGE, ...range })}
        />
      )
    case 'duration': {
      const lengths = typeof value === 'number' && !offered.includes(value) ? [...offered, value] : offered
      return (
        <Choice
          label={label}
          {...(all !== undefined && { all })}
          value={value?.toString()}
          options={lengths.map((ms) => [String(ms), `From ${duration(ms)}`])}
          onChange={(ms) => set({ [address]: Number(ms) || undefined })}
        />
      )
    }
    case 'words':
      if (row.words.length === 1) {
        const [word] = row.words
        const on = word === 'true' ? true : word
        return (
          <Check label={label} isOn={value === on} onChange={(isOn) => set({ [address]: isOn ? on : undefined })} />
        )
      }
      return (
        <Choice
          label={label}
          {...(all !== undefined && { all })}
          value={value?.toString()}
          options={row.words.map((word, index) => [word, words?.[index] ?? wordOf?.(word) ?? word])}
          onChange={(word) => set({ [address]: word })}
        />
      )
    default: {
      const isNumber = row.kind === 'amount' || row.kind === 'count'
      const known = suggestions?.[name]
      const width = widths[name] ?? widths['']
      return (
        <TextFilter
          {...(id !== undefined && { id })}
          label={label}
          placeholder={placeholder ?? label}
          {...(width !== undefined && { className: width })}
          {...(row.kind === 'amount' && { pattern: AMOUNT_PATTERN })}
          {...(row.field?.pattern !== undefined && { pattern: row.field.pattern })}
          {...(known && { suggestions: known })}
          value={value?.toString()}
          onChange={(text) => set({ [address]: isNumber ? Number(text) || undefined : text })}
        />
      )
    }
  }
}

interface BarProps<Search extends object> extends FieldsProps<Search> {
  /** Filters that are behind a button unless one of them is set. */
  behind?: readonly string[]
  /** Filters to keep when the others are cleared. */
  cleared?: Search
  isFiltered?: boolean
  className?: string
  /** Elements after the fields. */
  children?: ReactNode
  /** Elements below the fields. */
  more?: ReactNode
}

export function FilterBar<Search extends object>(props: BarProps<Search>) {
  const { cleared, isFiltered, className = 'flex flex-wrap items-center gap-2 py-3', children, more, ...fields } = props
  const { behind = [], id, ...shown } = fields
  const count = behind.filter((name) => {
    const address = shown.filters[name]?.address ?? name
    return shown.search[address as keyof Search] !== undefined
  }).length
  const [isMore, setMore] = useState(count > 0)
  return (
    <div role="search" className={className}>
      <FilterFields {...shown} {...(id !== undefined && { id })} />
      {children}
      {behind.length > 0 && (
        <Button look="quiet" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
          {isMore ? 'Fewer filters' : count > 0 ? `More filters (${count})` : 'More filters'}
        </Button>
      )}
      {isFiltered && (
        <Button look="quiet" onClick={() => fields.onChange(cleared ?? ({} as Search))}>
          Clear
        </Button>
      )}
      {isMore && (
        <div className="flex w-full flex-wrap items-center gap-2">
          <FilterFields {...shown} names={behind} />
        </div>
      )}
      {more}
    </div>
  )
}

interface CheckProps {
  label: string
  isOn: boolean
  onChange: (isOn: boolean) => void
}

function Check({ label, isOn, onChange }: CheckProps) {
  return (
    <label className="field flex items-center gap-2 whitespace-nowrap">
      <input
        type="checkbox"
        checked={isOn}
        onChange={(event) => onChange(event.target.checked)}
        className="accent-accent"
      />
      {label}
    </label>
  )
}
