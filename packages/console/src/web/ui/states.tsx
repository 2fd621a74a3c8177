/** States that replace a page's content: loading, failed, not found, empty. */
import { Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { CallError } from '@tacho/client/throwing.ts'
import { isLost, isNotSent, isTemporary, lastAnswer, refusalOf } from '../api.ts'
import { Button } from './button.tsx'

export function PagePending() {
  return (
    <div role="status" aria-label="Loading" className="mx-auto w-full max-w-6xl px-4 py-6">
      <Skeleton className="h-7 w-40" />
      <Skeleton className="mt-6 h-9" />
      <Skeleton className="mt-2 h-9" />
      <Skeleton className="mt-2 h-9" />
    </div>
  )
}

export function Skeleton({ className = '' }: { className?: string }) {
  return <div className={`animate-pulse rounded-md bg-hover ${className}`} />
}

interface Note {
  title: string
  children?: ReactNode
  action?: ReactNode
}

/** Explains what will appear here and how to get it. */
export function Empty({ title, children, action }: Note) {
  return (
    <div className="mx-auto flex max-w-xl flex-col items-start gap-2 px-4 py-14">
      <h2 className="text-lg font-semibold">{title}</h2>
      <div className="text-soft">{children}</div>
      {action && <div className="mt-2">{action}</div>}
    </div>
  )
}

export function Forbidden({ children }: { children: ReactNode }) {
  return <Empty title="Your role does not allow this">{children}</Empty>
}

/** The page for an address that does not exist. */
export function NoPage() {
  return (
    <main>
      <NotFound />
    </main>
  )
}

export function NotFound() {
  return (
    <Empty
      title="There is nothing here"
      action={
        <Link to="/" className="link">
          Go to the overview
        </Link>
      }
    >
      The address names something that does not exist, or that you have no role for. Check the address, or ask the
      person who sent it.
    </Empty>
  )
}

/**
 * Whether the page has nothing to show: no data yet, or access was refused. During an outage or after the session
 * ended, a page keeps the data that it has.
 */
export function isBlocking(error: unknown, data: unknown): boolean {
  return error !== null && (data === undefined || !(isTemporary(error) || refusalOf(error)?.status === 401))
}

/** Describes an error: what happened, which data are safe, what to do, and the id to search for in the server's log. */
export function Trouble({ error, retry }: { error: unknown; retry?: () => void }) {
  const refusal = refusalOf(error)
  if (refusal?.status === 404) return <NotFound />
  return (
    <div role="alert" className="mx-auto flex max-w-xl flex-col items-start gap-2 px-4 py-14">
      <h2 className="text-lg font-semibold">{titleOf(error)}</h2>
      <p className="text-soft">{explain(error)}</p>
      {refusal && (
        <p className="text-sm text-soft">
          Request <code className="font-mono">{refusal.problem.requestId}</code>
        </p>
      )}
      {retry && (
        <Button className="mt-2" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  )
}

export function PageTrouble({ error, reset }: { error: unknown; reset: () => void }) {
  return isCodeMissing(error) ? <CodeMissing /> : <Trouble error={error} retry={reset} />
}

/** Shown if the code of a page is missing because the server was updated, unless the server does not answer at all. */
function CodeMissing() {
  const [isAnswering] = useState(() => Date.now() - lastAnswer.at < ANSWERED_MS)
  return (
    <Empty
      title={isAnswering ? 'A newer version of the console is there' : 'The server does not answer'}
      action={<Button onClick={() => window.location.reload()}>Reload</Button>}
    >
      Reload the page. What you typed is kept.
    </Empty>
  )
}

/**
 * Time after the last reply in which the server counts as answering: a visible page sends a request every two seconds.
 */
const ANSWERED_MS = 5_000

/** Messages of Chromium, Firefox and Safari if the code of a page cannot be loaded. */
const NO_SCRIPT = /dynamically imported module|Importing a module script failed|Unable to preload/

const isCodeMissing = (error: unknown): boolean => error instanceof Error && NO_SCRIPT.test(error.message)

function titleOf(error: unknown): string {
  const refusal = refusalOf(error)
  if (refusal?.status === 403) return 'Your role does not allow this'
  if (refusal) return 'The server refused this'
  return error instanceof CallError ? 'The server does not answer' : 'This page failed'
}

/** Explains why a change failed. The console does not send it again by itself. */
export function explainChange(error: unknown): string {
  if (isNotSent(error)) return 'Not sent: this device is offline. Nothing is kept for later, so send it again.'
  if (!isLost(error) || refusalOf(error)) return explain(error)
  return 'No answer: it is not known whether this was saved. Check what the page shows now before you send it again.'
}

/** Explains an error in one sentence. Forms show it beside their button. */
export function explain(error: unknown): string {
  if (!(error instanceof CallError)) return 'Reload the page. Recorded data is safe.'
  const { result } = error
  if (result.reason === 'refused') return `${result.problem.detail ?? result.problem.title}.`.replace(/\.+$/, '.')
  if (result.reason === 'too_large') return 'The reply is larger than the console takes.'
  return 'Recorded data is safe. Check the connection, then try again.'
}

/** Shows beside the button why its act failed. */
export function Refused({ error, className = '' }: { error: unknown; className?: string }) {
  if (!error) return null
  return (
    <p role="alert" className={`text-sm text-red ${className}`}>
      {explainChange(error)}
    </p>
  )
}
