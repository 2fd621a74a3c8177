/** Describes a thrown value for a payload. Each part has a bounded length. */
import { errorText, nameOf, readSafely } from './json.ts'
import { shortenedAtWord } from './text.ts'

const MESSAGE_CHARS = 4_096
/** The newest calls come first. */
const STACK_CHARS = 16_384
const CAUSES = 10

/** Errors of aborted work: of OpenAI and Anthropic (by class), LangChain (by message), and Next.js, when a reader leaves. */
const ABORTS = /^((APIUser|Error: )?AbortError|ResponseAborted)\b/

/** The host or a user stopped the work. */
export function isAbort(thrown: unknown): boolean {
  return ABORTS.test(errorText(thrown))
}

interface Facts {
  readonly type: string
  readonly message: string
  /** Error code, such as ECONNREFUSED or rate_limit_exceeded. */
  readonly code?: string | number
  /** Status of the HTTP response. */
  readonly status?: number
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
    const { message, code = '', statusCode, status = statusCode } = thrown as Coded
    return (
      typeof message === 'string' && {
        type: nameOf(thrown),
        message: shortenedAtWord(message, MESSAGE_CHARS),
        // The host's members may have any type. Only these identify a minified class.
        ...(/^[\w.-]{1,99}$/.test(code as string) && { code }),
        ...(status! > 99 && { status: status! }),
      }
    )
  }
  return readSafely(facts, false) || { type: typeof thrown, message: shortenedAtWord(errorText(thrown), MESSAGE_CHARS) }
}

interface Coded extends Error {
  code?: string | number
  status?: number
  statusCode?: number
}

function causesOf(thrown: unknown): unknown[] {
  const seenErrors = new Set([thrown])
  for (const error of seenErrors) {
    for (const next of readSafely(() => direct(error), [])) seenErrors.add(next)
    if (seenErrors.size > CAUSES) break
  }
  return [...seenErrors].slice(1, CAUSES + 1)
}

function direct(error: unknown): unknown[] {
  const { cause, errors } = (error ?? {}) as { cause?: unknown; errors?: unknown }
  return [cause, ...(Array.isArray(errors) ? (errors.slice(0, CAUSES) as unknown[]) : [])].filter(Boolean)
}
