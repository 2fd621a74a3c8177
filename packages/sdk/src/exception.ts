/** Describes a thrown value for a payload. Each part has a bounded length. */
import { errorText, readSafely } from './json.ts'
import { shortenedAtWord } from './text.ts'

const MESSAGE_CHARS = 4_096
/** The newest calls come first. */
const STACK_CHARS = 16_384
const CAUSES = 10

/** OpenAI's and Anthropic's error has no name of its own; Next.js throws the last one when a reader leaves. */
const ABORTS = /^(?:AbortError|APIUserAbortError|ResponseAborted)$/

/** The host or a user stopped the work. */
export function isAbort(thrown: unknown): boolean {
  const names = () => [(thrown as Error).name, (thrown as Error).constructor.name]
  return readSafely(names, []).some((name) => ABORTS.test(name))
}

interface Facts {
  readonly type: string
  readonly message: string
}

/** Accepts any thrown value. Causes of `cause` and of an AggregateError, the nearest first. */
export function exceptionOf(thrown: unknown): Facts & { stack?: string; causes?: Facts[] } {
  const stack = readSafely(() => (thrown as Error).stack, undefined)
  const causes = causesOf(thrown).map(factsOf)
  return {
    ...factsOf(thrown),
    ...(typeof stack === 'string' && { stack: shortenedAtWord(stack, STACK_CHARS) }),
    ...(causes.length > 0 && { causes }),
  }
}

function factsOf(thrown: unknown): Facts {
  const facts = () => {
    const { name, message } = thrown as Error
    return typeof message === 'string'
      ? { type: String(name), message: shortenedAtWord(message, MESSAGE_CHARS) }
      : undefined
  }
  return (
    readSafely(facts, undefined) ?? { type: typeof thrown, message: shortenedAtWord(errorText(thrown), MESSAGE_CHARS) }
  )
}

function causesOf(thrown: unknown): unknown[] {
  const found = new Set([thrown])
  for (const error of found) {
    for (const next of readSafely(() => direct(error), [])) found.add(next)
    if (found.size > CAUSES) break
  }
  return [...found].slice(1, CAUSES + 1)
}

function direct(error: unknown): unknown[] {
  const { cause, errors } = (error ?? {}) as { cause?: unknown; errors?: unknown }
  return [cause, ...(Array.isArray(errors) ? (errors.slice(0, CAUSES) as unknown[]) : [])].filter(Boolean)
}
