import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { Chip } from '../web/ui/chip.tsx'
import { State } from '../web/ui/state.tsx'
import { Countdown } from '../web/text/times.tsx'
import { counted } from '../web/text/format.ts'
import { ShownText } from '../web/text/shown-text.tsx'
import { Empty } from '../web/ui/states.tsx'
import { InputInShort, Requester, requesterOf, Sentence, ToolName } from './approval-summary.tsx'
import { needsPerson, WaitingLines } from './caller-state.tsx'

const route = getRouteApi('/w/$workspace/$environment/approvals')

/** Requests for the same tool and input. A person needs to look at only one of them. */
export interface Group {
  key: string
  toolName: string
  items: ApprovalCard[]
}

/** Groups of requests, sorted by their earliest deadline. Requests whose caller still waits come first. */
export function groupsOf(pending: readonly ApprovalCard[]): Group[] {
  const groups = new Map<string, Group>()
  for (const item of [...pending.filter(needsPerson), ...pending.filter((item) => !needsPerson(item))]) {
    const key = `${needsPerson(item)} ${item.inputHash} ${item.toolName}`
    const group = groups.get(key)
    if (group) group.items.push(item)
    else groups.set(key, { key, toolName: item.toolName, items: [item] })
  }
  return [...groups.values()]
}

function isFirstLeft(groups: readonly Group[], at: number): boolean {
  const isLeft = (group: Group | undefined) => group?.items.some((item) => !needsPerson(item)) === true
  return isLeft(groups[at]) && !isLeft(groups[at - 1])
}

interface Props {
  groups: readonly Group[]
  isMore: boolean
  current: string | undefined
  /** Null if the person may not decide. */
  marked: ReadonlySet<string> | null
  onMark: (ids: readonly string[], isMarked: boolean) => void
}

export function WaitingList({ groups, isMore, current, marked, onMark }: Props) {
  if (groups.length === 0) {
    return (
      <Empty title="Nothing waits for a decision">
        When a policy asks a person before a tool runs, the request appears here at once, with its deadline. Agents
        wait; nothing runs without an answer.
      </Empty>
    )
  }
  return (
    <div role="list" aria-label="Waiting approvals">
      {groups.map(({ key, toolName, items }, at) => (
        <Fragment key={key}>
          {isFirstLeft(groups, at) && (
            <p role="listitem" className="border-b border-line bg-side px-4 py-2 text-sm font-medium">
              Nobody waits for these any more
            </p>
          )}
          {items.length > 1 && (
            <div role="listitem" className="flex items-center gap-2.5 bg-side px-4 py-1.5 text-sm">
              {marked && (
                <label className="-m-2 p-2">
                  <input
                    type="checkbox"
                    className="size-4 accent-accent-fill"
                    aria-label={`Mark all ${items.length} of ${toolName}`}
                    checked={items.every(({ id }) => marked.has(id))}
                    onChange={(event) =>
                      onMark(
                        items.map(({ id }) => id),
                        event.target.checked,
                      )
                    }
                  />
                </label>
              )}
              <span className="min-w-0 truncate">
                <bdi className="font-mono font-medium">
                  <ShownText text={toolName} />
                </bdi>
                <span className="text-soft"> · {counted(items.length, 'request')} with the same input</span>
              </span>
            </div>
          )}
          {items.map((item) => (
            <Item
              key={item.id}
              item={item}
              isCurrent={item.id === current}
              isMarked={marked?.has(item.id) ?? null}
              onMark={(isMarked) => onMark([item.id], isMarked)}
            />
          ))}
        </Fragment>
      ))}
      {isMore && (
        <p role="listitem" className="px-4 py-3 text-sm text-soft">
          These have the earliest deadlines. More follow when some are decided.
        </p>
      )}
    </div>
  )
}

interface ItemProps {
  item: ApprovalCard
  isCurrent: boolean
  isMarked: boolean | null
  onMark: (isMarked: boolean) => void
}

function Item({ item, isCurrent, isMarked, onMark }: ItemProps) {
  const params = route.useParams()
  const search = route.useSearch()
  const requester = requesterOf(item)
  return (
    <div
      role="listitem"
      data-current={isCurrent}
      className="relative flex items-start gap-2.5 border-b border-line px-4 py-2.5 hover:bg-hover data-[current=true]:bg-accent-wash"
    >
      {isMarked !== null && (
        <label className="relative z-10 -m-2 p-2">
          <input
            type="checkbox"
            className="mt-0.5 size-4 accent-accent-fill"
            aria-label={`Mark ${item.toolName} of ${requester}`}
            checked={isMarked}
            onChange={(event) => onMark(event.target.checked)}
          />
        </label>
      )}
      <div className="min-w-0 flex-1">
        <div className="flex items-baseline justify-between gap-3">
          <Link
            to="/w/$workspace/$environment/approvals/$approvalId"
            params={{ ...params, approvalId: item.id }}
            search={search}
            aria-current={isCurrent ? 'true' : undefined}
            className="line-clamp-2 min-w-0 text-sm font-medium [overflow-wrap:anywhere] after:absolute after:inset-0"
          >
            <Sentence of={item} />
          </Link>
          <Countdown until={item.expiresAt} />
        </div>
        <InputInShort of={item} />
        {item.inputCheck?.result === 'does_not_match' && (
          <p className="mt-0.5 text-sm font-semibold text-red">✕ This input does not match what the agent asked for</p>
        )}
        <WaitingLines of={item} />
        {item.reason !== null && (
          <p dir="auto" className="mt-0.5 line-clamp-2 text-sm [unicode-bidi:isolate]">
            <ShownText text={item.reason} quoted />
          </p>
        )}
        <p className="mt-0.5 flex items-center gap-2 text-sm text-soft">
          <ToolName of={item} />
          <Requester of={item} />
          {item.approvers === 2 && <Chip>{item.firstApproval === null ? '0 of 2 people' : '1 of 2 people'}</Chip>}
          {item.askedLately.burst && <State is="BURST" />}
        </p>
      </div>
    </div>
  )
}
