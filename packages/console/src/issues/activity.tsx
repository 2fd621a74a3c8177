import type { IssueActivity } from '@tacho/contract/issues/issue.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Author } from '../web/ui/chip.tsx'
import { api } from '../web/api.ts'
import { Button, More } from '../web/ui/button.tsx'
import { useDraftState } from '../web/ui/draft-state.ts'
import { LongText } from '../web/text/long-text.tsx'
import { exact } from '../web/text/format.ts'
import { Refused } from '../web/ui/states.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { Time } from '../web/text/times.tsx'
import { useActivity } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/issues/$issueId')
export const COMMENT_ID = 'comment-issue'

interface Props {
  environmentId: string
  issueId: string
  canComment: boolean
}

/** Comments and changes in one list, latest first. */
export function Activity({ environmentId, issueId, canComment }: Props) {
  const list = useActivity(environmentId, issueId)
  return (
    <Section title="Comments and history">
      {canComment && <NewComment environmentId={environmentId} issueId={issueId} />}
      {!list.isPending && list.items.length === 0 && <Nothing>Nothing has happened to this issue yet.</Nothing>}
      <ol>
        {list.items.map((entry) => (
          <li key={entry.id} className="border-b border-line py-2 text-sm last:border-0">
            <p className="text-soft">
              <Author
                name={entry.actor?.name ?? 'The service'}
                importedAt={entry.importedAt}
                className="font-medium text-ink"
              />{' '}
              <Act entry={entry} /> <Time at={entry.at} />
            </p>
            {entry.text !== null && (
              <div className="mt-1">
                <LongText text={entry.text} />
              </div>
            )}
          </li>
        ))}
      </ol>
      <More list={list} label="Show older entries" />
    </Section>
  )
}

function Act({ entry: { kind, detail } }: { entry: IssueActivity }) {
  const { assignee, issueId, until } = detail
  switch (kind) {
    case 'COMMENTED':
      return 'commented'
    case 'RESOLVED':
      return 'resolved the issue'
    case 'IGNORED':
      return typeof until === 'string' ? <>ignored the issue until {exact(Date.parse(until))}</> : 'ignored the issue'
    case 'REOPENED':
      return 'reopened the issue'
    case 'REGRESSED':
      return <span className="font-medium text-amber">reopened it: it was detected again after it was resolved</span>
    case 'ASSIGNED':
      return typeof assignee === 'string' ? (
        <>
          assigned it to <bdi>{assignee}</bdi>
        </>
      ) : (
        'removed the assignee'
      )
    case 'MERGED':
      return <OtherIssue act="merged another issue into it" issueId={issueId} />
    case 'MERGED_INTO':
      return <OtherIssue act="merged it into another issue" issueId={issueId} />
    case 'SPLIT':
      return <OtherIssue act="split facts off into another issue" issueId={issueId} />
    case 'SPLIT_FROM':
      return <OtherIssue act="split it off another issue" issueId={issueId} />
  }
}

function OtherIssue({ act, issueId }: { act: string; issueId: unknown }) {
  const params = route.useParams()
  if (typeof issueId !== 'string') return act
  return (
    <Link to="/w/$workspace/$environment/issues/$issueId" params={{ ...params, issueId }} className="link">
      {act}
    </Link>
  )
}

function NewComment({ environmentId, issueId }: { environmentId: string; issueId: string }) {
  const { value: text, set: setText, forget } = useDraftState<string>(`comment ${environmentId} ${issueId}`, '')
  const comment = useMutation({
    mutationFn: () => api.commentIssue({ params: { environmentId, issueId }, body: { text: text.trim() } }),
    onSuccess: forget,
  })
  return (
    <form
      className="flex flex-col items-end gap-2 pb-2"
      onSubmit={(event) => {
        event.preventDefault()
        comment.mutate()
      }}
    >
      <textarea
        id={COMMENT_ID}
        aria-label="Comment"
        placeholder="What you found out"
        rows={2}
        maxLength={LIMITS.commentChars}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur()
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && text.trim() !== '') comment.mutate()
        }}
        className="field h-auto w-full py-1.5 text-base"
      />
      <Refused error={comment.error} />
      <Button type="submit" busy={comment.isPending} disabled={text.trim() === ''}>
        Comment
      </Button>
    </form>
  )
}
