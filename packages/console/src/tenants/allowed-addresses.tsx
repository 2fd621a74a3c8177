import { Field } from '../web/ui/field.tsx'

interface Props {
  value: string
  onChange: (value: string) => void
}

/** The networks from which a key or token is valid. */
export function AllowedAddressesField({ value, onChange }: Props) {
  return (
    <Field
      label="Allowed from"
      hint="Addresses and networks, separated by commas, such as 192.0.2.0/24"
      placeholder="anywhere"
      autoComplete="off"
      spellCheck={false}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** Null: from every address. */
export function networksIn(text: string): string[] | null {
  const networks = text.split(/[\s,]+/).filter((part) => part !== '')
  return networks.length === 0 ? null : networks
}

export function AllowedFrom({ networks }: { networks: string[] | null }) {
  return networks === null ? <span className="text-soft">anywhere</span> : <span>{networks.join(', ')}</span>
}
