import { useState, type ReactNode } from 'react'
import { Button } from '../web/ui/button.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { Refused } from '../web/ui/states.tsx'
import { AssignDialog, IgnoreDialog, MergeDialog, type Target } from './issue-dialogs.tsx'
import { useTriage, type Act } from './triage.ts'

interface Props {
  environmentId: string
  workspaceId: string
  /** The issues to change: the one on the page, the selected ones, or the one that was reached by keyboard. */
  targets: readonly Target[]
  /** Similar issues that a person wants to merge. */
  alike?: readonly Target[] | null
  onAlikeClose?: () => void
  /** Called before an act. */
  onAct?: (changed: readonly Target[]) => void
  /** Called after an act. */
  onDone?: (act: Act) => unknown
  /** More acts. `first`: content before the acts. */
  children?: ReactNode
  first?: ReactNode
  className?: string
}

/** Buttons and keys for acts on issues, and the button that undoes the last act. */
export function IssueActs(props: Props) {
  const {
    environmentId,
    workspaceId,
    targets,
    alike = null,
    onAlikeClose,
    onAct,
    onDone,
    children,
    first,
    className,
  } = props
  const [open, setOpen] = useState<'ignore' | 'assign' | 'merge' | null>(null)
  const { act, undo, done, isBusy, error } = useTriage(environmentId)
  const run = async (one: Act, of = targets) => {
    onAct?.(of)
    await act(one, of)
    await onDone?.(one)
  }
  // Ignore a second press: by then, it would act on changed issues.
  const now = (is: 'resolve' | 'reopen') => void (isBusy || run({ is }).catch(() => undefined))
  const close = () => {
    setOpen(null)
    onAlikeClose?.()
  }
  const isAny = targets.length > 0
  const isOpen = targets.every(({ state }) => state === 'OPEN')
  const these = targets.length === 1 ? 'this issue' : 'these issues'
  useKeys({
    ...(isAny && {
      ...(isOpen
        ? {
            e: { name: `Resolve ${these}`, act: () => now('resolve') },
            i: { name: `Ignore ${these}`, act: () => setOpen('ignore') },
          }
        : { o: { name: `Reopen ${these}`, act: () => now('reopen') } }),
      a: { name: `Assign ${these}`, act: () => setOpen('assign') },
      m: {
        name: targets.length === 1 ? 'Merge into another issue' : 'Merge these issues',
        act: () => setOpen('merge'),
      },
    }),
    ...(done !== null && { u: { name: `Undo: ${done.text}`, act: undo } }),
  })
  const dialog = { environmentId, targets, onClose: close }
  return (
    <>
      {(isAny || done !== null || error !== null) && (
        <div role="group" aria-label="Acts" className={`flex flex-wrap items-center gap-2 ${className ?? ''}`}>
          {first}
          {isAny && (
            <>
              {isOpen ? (
                <>
                  <Button look="accent" busy={isBusy} aria-keyshortcuts="e" onClick={() => now('resolve')}>
                    Resolve
                  </Button>
                  <Button aria-keyshortcuts="i" onClick={() => setOpen('ignore')}>
                    Ignore…
                  </Button>
                </>
              ) : (
                <Button busy={isBusy} aria-keyshortcuts="o" onClick={() => now('reopen')}>
                  Reopen
                </Button>
              )}
              <Button aria-keyshortcuts="a" onClick={() => setOpen('assign')}>
                Assign…
              </Button>
              <Button look="quiet" aria-keyshortcuts="m" onClick={() => setOpen('merge')}>
                Merge…
              </Button>
            </>
          )}
          {children}
          {done !== null && (
            <span className="flex min-w-0 items-center gap-2 text-sm">
              <span role="status" className="min-w-0 truncate text-soft">
                {done.text}
              </span>
              <Button look="quiet" busy={isBusy} aria-keyshortcuts="u" onClick={undo}>
                Undo
              </Button>
            </span>
          )}
          <Refused error={error} className="w-full" />
        </div>
      )}
      {open === 'ignore' && <IgnoreDialog {...dialog} act={(until) => run({ is: 'ignore', until })} />}
      {open === 'assign' && (
        <AssignDialog {...dialog} workspaceId={workspaceId} act={(assignee) => run({ is: 'assign', assignee })} />
      )}
      {(open === 'merge' || alike !== null) && (
        <MergeDialog
          {...dialog}
          targets={alike ?? targets}
          act={(into) => run({ is: 'merge', into }, alike ?? targets)}
        />
      )}
    </>
  )
}
