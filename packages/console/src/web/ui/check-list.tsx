interface CheckListProps<Value extends string> {
  legend: string
  options: readonly (readonly [value: Value, note: string])[]
  chosen: readonly Value[]
  onChange: (chosen: Value[]) => void
}

/** A choice of several. */
export function CheckList<Value extends string>({ legend, options, chosen, onChange }: CheckListProps<Value>) {
  const toggled = (value: Value) =>
    options.map(([one]) => one).filter((one) => (one === value ? !chosen.includes(one) : chosen.includes(one)))
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">{legend}</legend>
      {options.map(([value, note]) => (
        <label key={value} className="flex cursor-pointer items-baseline gap-2.5 py-1 text-sm">
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={() => onChange(toggled(value))}
            className="accent-accent"
          />
          <span>
            <code className="font-mono">{value}</code> <span className="text-soft">{note}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}
