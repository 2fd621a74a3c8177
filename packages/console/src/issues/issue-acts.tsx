import type { Issue } from '@tacho/contract/issues/issue.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { Refused } from '../web/ui/states.tsx'
import { COMMENT_ID } from './activity.tsx'
import { AssignDialog, IgnoreDialog, MergeDialog, SplitDialog } from './issue-dialogs.tsx'

interface Props {
  environmentId: string
  workspaceId: string
  issue: Issue
}

const STATE_CALLS = { resolve: api.resolveIssue, reopen: api.reopenIssue } as const

export function IssueActs({ environmentId, workspaceId, issue }: Props) {
  const cache = useQueryClient()
  const navigate = useNavigate()
  const [open, setOpen] = useState<'ignore' | 'assign' | 'merge' | 'split' | null>(null)
  const params = { environmentId, issueId: issue.id }
  const renew = () => cache.invalidateQueries({ queryKey: ['issues', environmentId] })
  const change = useMutation({
    mutationFn: (act: keyof typeof STATE_CALLS) => STATE_CALLS[act]({ params }),
    // Also after a refusal: another person may have acted first.
    onSettled: renew,
  })
  const close = () => setOpen(null)
  const openIssue = async (issueId: string) => {
    close()
    await renew()
    await navigate({ to: '../$issueId', from: '/w/$workspace/$environment/issues/$issueId', params: { issueId } })
  }
  const isOpen = issue.state === 'OPEN'
  useKeys({
    ...(isOpen
      ? {
          r: { name: 'Resolve this issue', act: () => change.mutate('resolve') },
          i: { name: 'Ignore this issue', act: () => setOpen('ignore') },
        }
      : { o: { name: 'Reopen this issue', act: () => change.mutate('reopen') } }),
    a: { name: 'Assign this issue', act: () => setOpen('assign') },
    m: { name: 'Merge into another issue', act: () => setOpen('merge') },
    c: { name: 'Comment on this issue', act: () => document.getElementById(COMMENT_ID)?.focus() },
  })
  return (
    <div className="mt-3 flex flex-wrap items-center gap-2">
      {isOpen ? (
        <>
          <Button look="accent" busy={change.isPending} onClick={() => change.mutate('resolve')}>
            Resolve
          </Button>
          <Button onClick={() => setOpen('ignore')}>Ignore…</Button>
        </>
      ) : (
        <Button busy={change.isPending} onClick={() => change.mutate('reopen')}>
          Reopen
        </Button>
      )}
      <Button onClick={() => setOpen('assign')}>Assign…</Button>
      <Button look="quiet" onClick={() => setOpen('merge')}>
        Merge…
      </Button>
      {issue.groups.length > 1 && (
        <Button look="quiet" onClick={() => setOpen('split')}>
          Split…
        </Button>
      )}
      <Refused error={change.error} className="w-full" />
      {open === 'ignore' && <IgnoreDialog params={params} onClose={close} onDone={renew} />}
      {open === 'assign' && (
        <AssignDialog
          params={params}
          workspaceId={workspaceId}
          current={issue.assignee}
          onClose={close}
          onDone={renew}
        />
      )}
      {open === 'merge' && <MergeDialog params={params} onClose={close} onDone={openIssue} />}
      {open === 'split' && <SplitDialog params={params} groups={issue.groups} onClose={close} onDone={openIssue} />}
    </div>
  )
}
