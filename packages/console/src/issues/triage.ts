/** Acts on issues, and their undo. One act runs at a time, because a merge changes which issues the next act finds. */
import { skipToken, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { counted } from '../web/text/format.ts'
import type { Target } from './issue-dialogs.tsx'

export type Act =
  | { is: 'resolve' | 'reopen' }
  | { is: 'ignore'; until: string | null }
  | { is: 'assign'; assignee: string | null }
  | { is: 'merge'; into: string }

type Undo = () => Promise<unknown>

interface Done {
  /** Summary of the act, such as `Resolved 3 issues`. */
  text: string
  undo: readonly Undo[]
}

const doneKey = (environmentId: string) => ['issues done', environmentId]

export function useTriage(environmentId: string) {
  const cache = useQueryClient()
  // Stored outside the page: an issue may be resolved on its page, and the act undone in the list.
  const { data: done = null } = useQuery<Done | null>({ queryKey: doneKey(environmentId), queryFn: skipToken })
  const note = (next: Done | null) => cache.setQueryData(doneKey(environmentId), next)
  const acting = useMutation({
    mutationFn: async ({ act, targets }: { act: Act; targets: readonly Target[] }) => {
      const undo: Undo[] = []
      const changed = targets.filter(({ id }) => act.is !== 'merge' || id !== act.into)
      try {
        for (const issue of changed) undo.unshift(await change(environmentId, issue, act))
      } finally {
        if (undo.length > 0) note({ text: doneText(act, changed.slice(0, undo.length)), undo })
      }
    },
  })
  const undoing = useMutation({
    mutationFn: async () => {
      note(null)
      const steps = [...(done?.undo ?? [])]
      try {
        for (; steps[0]; steps.shift()) await steps[0]()
      } finally {
        // Keep the steps that could not be undone, so that the person can try again.
        if (done && steps.length > 0) note({ ...done, undo: steps })
      }
    },
    onMutate: acting.reset,
  })
  return {
    act: (act: Act, targets: readonly Target[]) => acting.mutateAsync({ act, targets }),
    undo: () => done !== null && !acting.isPending && undoing.mutate(),
    done,
    isBusy: acting.isPending || undoing.isPending,
    error: acting.error ?? undoing.error,
  }
}

async function change(environmentId: string, issue: Target, act: Act): Promise<Undo> {
  const params = { environmentId, issueId: issue.id }
  const ignore = (until: string | null) => api.ignoreIssue({ params, query: until === null ? {} : { until } })
  switch (act.is) {
    case 'resolve':
      await api.resolveIssue({ params })
      return () => reopened(params)
    case 'ignore':
      await ignore(act.until)
      return () => reopened(params)
    case 'reopen':
      await api.reopenIssue({ params })
      return () => (issue.state === 'RESOLVED' ? api.resolveIssue({ params }) : ignore(issue.ignoredUntil))
    case 'assign': {
      await api.assignIssue({ params, body: { assignee: act.assignee } })
      return () => api.assignIssue({ params, body: { assignee: issue.assignee } })
    }
    case 'merge': {
      const { id, groups } = await api.mergeIssue({ params, body: { into: act.into } })
      const moved = groups.filter(({ mergedFrom }) => mergedFrom === issue.id).map(({ fingerprint }) => fingerprint)
      return () => api.splitIssue({ params: { environmentId, issueId: id }, body: { fingerprints: moved } })
    }
  }
}

/** Reopens an issue. If a detection has already reopened it, there is nothing to undo. */
async function reopened(params: { environmentId: string; issueId: string }): Promise<void> {
  try {
    await api.reopenIssue({ params })
  } catch (error) {
    const { state } = await api.readIssue({ params })
    if (state !== 'OPEN') throw error
  }
}

const WORDS = { resolve: 'Resolved', reopen: 'Reopened', ignore: 'Ignored' } as const

function doneText(act: Act, changed: readonly Target[]): string {
  if (act.is === 'merge') return `Merged ${counted(changed.length + 1, 'issue')} into one`
  const [first] = changed
  const which =
    changed.length === 1 && first ? `\u201C\u2068${first.title}\u2069\u201D` : counted(changed.length, 'issue')
  if (act.is !== 'assign') return `${WORDS[act.is]} ${which}`
  return act.assignee === null ? `Removed the assignee of ${which}` : `Assigned ${which} to ${act.assignee}`
}
