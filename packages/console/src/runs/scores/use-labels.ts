/**
 * Applies the keys that a judge presses, in order. Each applies to the run that is visible then; a key that is pressed
 * before the next run has arrived waits for it. Judgements are sent one after another in the background. If one is
 * rejected, its run returns, and later keys are dropped.
 */
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import type { Score } from '@tacho/contract/runs/score.ts'
import { typedScore } from '@tacho/contract/runs/run-text.ts'
import { useEffect, useRef, useState } from 'react'
import { rememberName, useJudging } from './queries.ts'

export type Press = { act: 'judge'; text: string; comment: string } | { act: 'pass' } | { act: 'undo' }

interface Labelled {
  run: OperatorRun
  /** Null: the score was rejected. Undefined: the run was skipped. */
  score: Promise<Score | null> | undefined
}

export function useLabels(environmentId: string, name: string) {
  const { give, withdraw } = useJudging(environmentId)
  const [pressed, setPressed] = useState<readonly Press[]>([])
  const [passed, setPassed] = useState<ReadonlySet<string>>(new Set())
  const [labelled, setLabelled] = useState<readonly Labelled[]>([])
  /** The run whose judgement was undone or rejected. */
  const [returned, setReturned] = useState<OperatorRun | null>(null)
  const [isUndoing, setUndoing] = useState(false)
  const sending = useRef<Promise<unknown>>(Promise.resolve())

  const bringBack = (run: OperatorRun) => {
    setPressed([])
    setLabelled((before) => before.filter((one) => one.run.id !== run.id))
    setPassed((known) => new Set([...known].filter((id) => id !== run.id)))
    setReturned(run)
  }
  const judge = (run: OperatorRun, text: string, comment: string) => {
    rememberName(name)
    const body = { name, value: typedScore(text), comment: comment.trim() || null }
    const send = () => give.mutateAsync({ runId: run.runId, body })
    const score = sending.current.then(send).catch(() => {
      bringBack(run)
      return null
    })
    sending.current = score
    setLabelled((before) => [...before, { run, score }])
  }
  const undo = async ({ run, score }: Labelled) => {
    if (score === undefined) return bringBack(run)
    setUndoing(true)
    try {
      const givenScore = await score
      if (givenScore === null) return
      await withdraw.mutateAsync({ runId: run.runId, scoreId: givenScore.id })
      bringBack(run)
    } catch {
      // Ignore it here: `error` describes the failure, and the judgement stays.
    } finally {
      setUndoing(false)
    }
  }

  return {
    passed,
    returned,
    judged: labelled.filter(({ score }) => score !== undefined).length,
    canUndo: labelled.length > 0,
    error: give.error ?? withdraw.error,
    press: (press: Press) => setPressed((before) => [...before, press]),
    forget: () => {
      setPassed(new Set())
      setLabelled([])
    },
    /** Applies the first waiting key. `run`: the visible run; undefined: none has arrived yet. */
    useNext(run: OperatorRun | undefined) {
      useEffect(() => {
        const [next] = pressed
        if (next === undefined || isUndoing || (run === undefined && next.act !== 'undo')) return
        setPressed((before) => before.slice(1))
        const last = labelled.at(-1)
        if (next.act === 'undo') {
          if (last) void undo(last)
          return
        }
        if (!run) return
        if (next.act === 'judge') judge(run, next.text, next.comment)
        else setLabelled((before) => [...before, { run, score: undefined }])
        setReturned(null)
        setPassed((known) => new Set([...known, run.id]))
      })
    },
  }
}
