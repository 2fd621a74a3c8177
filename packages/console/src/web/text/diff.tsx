import type { VersionDiff } from '@tacho/contract/policies/version.ts'

type Line = VersionDiff['fields'][number]['lines'][number]

/** Unchanged lines to show around a change. */
const CONTEXT = 3
const LOOKS = {
  same: { sign: ' ', look: 'text-soft' },
  removed: { sign: '−', look: 'bg-red-wash text-red' },
  added: { sign: '+', look: 'bg-green-wash text-green' },
} as const

/** The fields that differ between two versions, line by line. */
export function Diff({ diff: { fields } }: { diff: VersionDiff }) {
  if (fields.length === 0) return <p className="text-sm text-soft">These versions say the same.</p>
  return fields.map(({ field, lines, exact }) => (
    <section key={field} aria-label={field} className="mt-3 first:mt-0">
      <h3 className="text-xs font-medium text-soft">
        {field}
        {!exact && ' (the texts differ too much to match their lines)'}
      </h3>
      <DiffLines label={`Differences in ${field}`} rows={inContext(lines)} />
    </section>
  ))
}

/** Null stands for lines that are left out. */
type Row = Line | null

export function DiffLines({ label, rows }: { label: string; rows: readonly Row[] }) {
  return (
    <pre
      tabIndex={0}
      aria-label={label}
      className="mt-1 max-h-[60dvh] overflow-auto rounded-lg border border-line font-mono text-[0.8125rem]"
    >
      {rows.map((line, index) =>
        line === null ? (
          <div key={index} className="bg-side px-3 text-soft select-none">
            ⋯
          </div>
        ) : (
          <div key={index} className={`flex gap-2 px-3 ${LOOKS[line.change].look}`}>
            <span className="w-3 shrink-0 select-none">
              <span aria-hidden>{LOOKS[line.change].sign}</span>
              {line.change !== 'same' && <span className="sr-only">{line.change}: </span>}
            </span>
            <span className="min-w-0 whitespace-pre-wrap">{line.text === '' ? ' ' : line.text}</span>
          </div>
        ),
      )}
    </pre>
  )
}

/** Replaces long unchanged stretches by one row. */
function inContext(lines: readonly Line[]): Row[] {
  const near = new Set<number>()
  for (const [index, { change }] of lines.entries()) {
    if (change === 'same') continue
    for (let at = index - CONTEXT; at <= index + CONTEXT; at++) near.add(at)
  }
  return lines.flatMap((line, index): Row[] => {
    if (near.has(index)) return [line]
    return index === 0 || near.has(index - 1) ? [null] : []
  })
}
