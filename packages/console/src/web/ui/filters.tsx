/** Filters above a list. The address contains their values. */
import { useEffect, useId, useState } from 'react'

const TYPING_MS = 250

interface TextFilterProps {
  id?: string
  label: string
  placeholder: string
  className?: string
  value: string | undefined
  onChange: (text: string) => void
  /** A regular expression. A value that does not match has no effect and is marked. */
  pattern?: string
  suggestions?: readonly string[]
}

/** A text field whose value takes effect a moment after the last key. */
export function TextFilter(props: TextFilterProps) {
  const { id, label, placeholder, className = 'w-36', value = '', onChange, pattern, suggestions } = props
  const [text, setText] = useState(value)
  const listId = useId()
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value || (pattern && !new RegExp(`^(${pattern})?$`).test(text))) return
    const timer = setTimeout(() => onChange(text), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text, value, onChange, pattern])
  return (
    <>
      <input
        id={id}
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          // Escape would also clear a search field.
          event.preventDefault()
          event.currentTarget.blur()
        }}
        pattern={pattern}
        list={suggestions && listId}
        className={`field invalid:border-red invalid:text-red ${className}`}
      />
      {suggestions && (
        <datalist id={listId}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </>
  )
}

interface ChoiceProps {
  label: string
  /** Label for no choice. Absent: one option is always chosen. */
  all?: string
  value: string | undefined
  options: readonly (readonly [value: string, word: string])[]
  onChange: (value: string) => void
  className?: string
}

export function Choice({ label, all, value = '', options, onChange, className = '' }: ChoiceProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className={`field ${className}`}
    >
      {all !== undefined && <option value="">{all}</option>}
      {options.map(([option, word]) => (
        <option key={option} value={option}>
          {word}
        </option>
      ))}
    </select>
  )
}

/** A search with some of its texts replaced; an empty text leaves its filter out. */
export function changed<Search extends object>(
  search: Search,
  change: { [Name in keyof Search]?: Search[Name] | string | undefined },
): Search {
  const merged = Object.entries({ ...search, ...change }).filter(([, value]) => value !== '' && value !== undefined)
  return Object.fromEntries(merged) as Search
}
