interface Props<Value extends string> {
  label: string
  value: Value
  options: readonly (readonly [value: Value, word: string])[]
  onChange: (value: Value) => void
}

/** Parts of a page; which one shows stands in the address. */
export function Tabs<Value extends string>({ label, value, options, onChange }: Props<Value>) {
  return (
    <div role="group" aria-label={label} className="mt-2 flex gap-4 overflow-x-auto border-b border-line">
      {options.map(([option, word]) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          onClick={() => onChange(option)}
          className="tabular -mb-px border-b-2 border-transparent py-1.5 text-sm whitespace-nowrap text-soft hover:text-ink aria-pressed:border-accent aria-pressed:font-medium aria-pressed:text-ink"
        >
          {word}
        </button>
      ))}
    </div>
  )
}
