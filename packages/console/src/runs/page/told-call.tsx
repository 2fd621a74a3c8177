/** A call of a coding agent's tool as a person reads it: the command with its output, or the edit as a difference. */
import { pathEnd, type DiffLine, type ToldCommand, type ToldEdit } from '@tacho/contract/runs/call-text.ts'
import { useState, type ReactNode } from 'react'
import { DiffLines } from '../../web/text/diff.tsx'
import { counted } from '../../web/text/format.ts'
import { LongText } from '../../web/text/long-text.tsx'

/** Lines of a difference at first, and at most: the payload has the rest. */
const LINES_SHOWN = 24
const LINES_MAX = 2_000
const LINE_CHARS = 400

interface Props {
  told: ToldCommand | ToldEdit
  /** The name of the tool; left out where something else says it. */
  title?: string
  /** What came of it: how long it took, or that it failed. */
  aside?: ReactNode
  failed?: boolean
}

export function ToldCall({ told, title, aside, failed = false }: Props) {
  return (
    <section className="rounded-lg border border-line bg-raised px-3 py-2">
      <header className="flex items-center gap-2 text-sm">
        {title !== undefined && <bdi className="max-w-[40%] shrink-0 truncate font-mono font-medium">{title}</bdi>}
        <span className="min-w-0 flex-1 truncate text-soft">{told.is === 'edit' && <Changed edit={told} />}</span>
        {aside}
      </header>
      {told.is === 'edit' ? <Edit edit={told} /> : <Command told={told} failed={failed} />}
    </section>
  )
}

function Command({ told: { command, output }, failed }: { told: ToldCommand; failed: boolean }) {
  return (
    <>
      <div className="mt-1 flex gap-2 font-mono text-[0.8125rem]">
        <span aria-hidden className="text-soft select-none">
          $
        </span>
        <div className="min-w-0 font-medium [overflow-wrap:anywhere]">
          <LongText text={command} mono />
        </div>
      </div>
      {output !== null && (
        <div
          role="group"
          aria-label="Output"
          className={`mt-1.5 border-t border-line pt-1.5 [overflow-wrap:anywhere] ${failed ? 'text-red' : 'text-soft'}`}
        >
          <LongText text={output} mono />
        </div>
      )}
    </>
  )
}

function Changed({ edit: { files, added, removed } }: { edit: ToldEdit }) {
  return (
    <>
      <bdi title={files.join(', ')} className="font-mono text-xs text-ink">
        {files.map(pathEnd).join(', ')}
      </bdi>{' '}
      <span className="tabular text-xs">
        <span className="text-green">+{added}</span> <span className="text-red">−{removed}</span>
      </span>
    </>
  )
}

function Edit({ edit: { files, hunks } }: { edit: ToldEdit }) {
  const [isOpen, setOpen] = useState(false)
  const rows = hunks.flatMap((lines, index): (DiffLine | null)[] => (index === 0 ? [...lines] : [null, ...lines]))
  if (rows.length === 0) return null
  const most = isOpen ? LINES_MAX : LINES_SHOWN
  const left = rows.length - most
  return (
    <>
      <DiffLines label={`Changes of ${files.join(', ')}`} rows={rows.slice(0, most).map(shortened)} />
      {left > 0 &&
        (isOpen ? (
          <p className="mt-1 text-xs text-soft">{counted(left, 'more line')} in the payload.</p>
        ) : (
          <button type="button" onClick={() => setOpen(true)} className="link mt-1 text-xs font-medium">
            Show {counted(left, 'more line')}
          </button>
        ))}
    </>
  )
}

/** One line of a built file can be all of it. */
function shortened(line: DiffLine | null): DiffLine | null {
  if (line === null || line.text.length <= LINE_CHARS) return line
  return { ...line, text: `${line.text.slice(0, LINE_CHARS).toWellFormed()}…` }
}
