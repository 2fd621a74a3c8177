import { useId, useRef, useState } from 'react'
import { Button } from '../../web/ui/button.tsx'
import { useKeys } from '../../web/ui/keys.ts'
import { StateText } from '../../web/ui/state.tsx'
import { Refused } from '../../web/ui/states.tsx'

interface BarProps {
  mayJudge: boolean
  canUndo: boolean
  error: unknown
  comment: string
  onComment: (text: string) => void
  onJudge: (text: string) => void
  onPass: () => void
  onUndo: () => void
}

/** The bar for judging by keyboard or touch. */
export function JudgeBar(props: BarProps) {
  const { mayJudge, canUndo, error, comment, onComment, onJudge, onPass, onUndo } = props
  const id = useId()
  const [other, setOther] = useState('')
  const field = useRef<HTMLInputElement>(null)
  useKeys({
    c: { name: 'Write why', act: () => field.current?.focus() },
  })
  return (
    <form
      aria-label="Judgement"
      className="flex flex-wrap items-center gap-2 border-t border-line bg-page px-3 py-2 sm:px-5"
      onSubmit={(event) => {
        event.preventDefault()
        onJudge(other)
      }}
    >
      <Refused error={error} className="basis-full" />
      <input
        ref={field}
        aria-label="Why"
        placeholder="Why (c)"
        maxLength={2_000}
        value={comment}
        onChange={(event) => onComment(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        className="field h-10 min-w-0 basis-full sm:h-8 sm:flex-1 sm:basis-40"
      />
      <Button
        className="h-10 flex-1 sm:h-8 sm:flex-none"
        disabled={!mayJudge}
        onClick={() => onJudge('yes')}
        aria-keyshortcuts="1"
      >
        <StateText is="GOOD" /> <Key of="1" />
      </Button>
      <Button
        className="h-10 flex-1 sm:h-8 sm:flex-none"
        disabled={!mayJudge}
        onClick={() => onJudge('no')}
        aria-keyshortcuts="0"
      >
        <StateText is="BAD" /> <Key of="0" />
      </Button>
      <input
        id={id}
        aria-label="A number or a word instead"
        placeholder="or a number, a word"
        maxLength={64}
        value={other}
        onChange={(event) => setOther(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        className="field h-10 w-40 min-w-0 sm:h-8"
      />
      <Button type="submit" className="h-10 sm:h-8" disabled={!mayJudge || other.trim() === ''}>
        Judge
      </Button>
      <Button look="quiet" className="h-10 sm:h-8" onClick={onPass} aria-keyshortcuts="n">
        Skip <Key of="n" />
      </Button>
      <Button look="quiet" className="h-10 sm:h-8" disabled={!canUndo} onClick={onUndo} aria-keyshortcuts="u">
        Undo <Key of="u" />
      </Button>
    </form>
  )
}

function Key({ of }: { of: string }) {
  return <kbd className="hidden font-mono text-xs text-soft sm:inline">{of}</kbd>
}
