/** Shared by keys and tokens: name, expiry, and whether they still work. */
import { DamagedChip, State } from '../web/ui/state.tsx'
import { SelectField, Field } from '../web/ui/field.tsx'
import { useNow, Time } from '../web/text/times.tsx'

const DAY_MS = 86_400_000
export const EXPIRIES = [
  ['', 'Never'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
] as const

interface FieldProps {
  /** Lifetime in days; empty for unlimited. */
  days: string
  onChange: (days: string) => void
}

export function ExpiryField({ days, onChange }: FieldProps) {
  return <SelectField label="Expires" value={days} options={EXPIRIES} onChange={onChange} />
}

export function expiryOf(days: string): string | null {
  return days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString()
}

interface Credential {
  expiresAt: string | null
  revokedAt: string | null
  damaged?: true
}

export const hasEnded = ({ expiresAt, revokedAt }: Credential, now: number): boolean =>
  revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) <= now)

/** Sorts working credentials first, then by name, then newest first. */
export function usefulFirst<Item extends Credential & { name: string; createdAt: string }>(
  items: readonly Item[],
  now: number,
): Item[] {
  const byName = new Intl.Collator('en', { numeric: true }).compare
  return items.toSorted(
    (a, b) =>
      Number(hasEnded(a, now)) - Number(hasEnded(b, now)) ||
      byName(a.name, b.name) ||
      Date.parse(b.createdAt) - Date.parse(a.createdAt),
  )
}

export function CredentialState({ credential }: { credential: Credential }) {
  const now = useNow()
  const { expiresAt, revokedAt, damaged } = credential
  if (revokedAt !== null) return <State is="REVOKED" />
  if (damaged) {
    return <DamagedChip note="It changed on the disk and is refused. Revoke it and create another one." />
  }
  if (expiresAt === null) return <State is="ACTIVE" />
  const left = Date.parse(expiresAt) - now
  if (left <= 0) return <State is="EXPIRED" />
  return <State is={left < 7 * DAY_MS ? 'ENDS_SOON' : 'ACTIVE'} />
}

export function Expires({ at }: { at: string | null }) {
  return at === null ? <span className="text-soft">never</span> : <Time at={at} />
}

export function CredentialName({ id, name }: { id: string; name: string }) {
  return (
    <>
      <bdi className="block truncate font-medium max-sm:whitespace-normal" title={name}>
        {name}
      </bdi>
      <code className="block truncate font-mono text-xs text-soft">{id}</code>
    </>
  )
}

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

/** The networks in a text; null: every address is allowed. */
export function networksIn(text: string): string[] | null {
  const networks = text.split(/[\s,]+/).filter((networkText) => networkText !== '')
  return networks.length === 0 ? null : networks
}

export function AllowedFrom({ networks }: { networks: string[] | null }) {
  return networks === null ? <span className="text-soft">anywhere</span> : <span>{networks.join(', ')}</span>
}
