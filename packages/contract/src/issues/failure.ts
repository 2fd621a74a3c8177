/** The failure in an event: its error, and where it happened. Source: docs/decisions/0106-issues-from-what-fails.md. */
import { isFailedCall, neverRanCode } from '../runs/call-life.ts'
import { shortenedText } from '../engine/shown-text.ts'
import { duration } from '../engine/format.ts'
import { stalledMs, type ShownRun } from '../runs/run-activity.ts'
import type { FAILURE_PLACES } from '../engine/words.ts'

export interface FailedWith {
  /** Class of the error, such as TimeoutError; null if the event does not name one. */
  errorClass: string | null
  /** The first line of the message; null if the event has no message, as in metadata-only mode. */
  message: string | null
}

export interface Failure extends FailedWith {
  place: FailurePlace
  /** Stack as the client's language prints it. */
  stack: string | null
  /** Nearest cause first. */
  causes: FailedWith[]
}

export interface FailurePlace {
  kind: (typeof FAILURE_PLACES)[number]
  /** Null: unknown. */
  name: string | null
}

/** A failure in one line: `TimeoutError in get_order: no answer`. Empty if nothing is known. */
export function failureLine({ errorClass, message }: FailedWith, place: FailurePlace | null): string {
  // The message of a blocked tool already names the tool and the reason, and a list would cut a longer line.
  if (message !== null && errorClass?.split('.').at(-1) === 'ToolBlockedError') return message
  const at = place?.name ? placed(place.kind, place.name) : null
  const head = [errorClass ?? (at && 'error'), at].filter((failurePart) => failurePart !== null).join(' ')
  return [head, message ?? ''].filter((failurePart) => failurePart !== '').join(': ')
}

const placed = (kind: FailurePlace['kind'], name: string) => (kind === 'model' ? `from ${name}` : `in ${name}`)

interface EndedRun extends ShownRun {
  closedByRuleAt: string | null
  failure: (FailedWith & { place: FailurePlace['kind']; name: string | null }) | null
}

/** In one line, why a run failed or was cancelled; null if it did neither, or the reason is unknown. */
export function whyEnded({
  status,
  closedByRuleAt,
  failure,
}: Pick<EndedRun, 'status' | 'closedByRuleAt' | 'failure'>): string | null {
  if (closedByRuleAt !== null) return WENT_SILENT
  if ((status !== 'FAILED' && status !== 'CANCELLED') || failure === null) return null
  return failureLine(failure, { kind: failure.place, name: failure.name }) || null
}

/**
 * In a list, why a person should look at a run: it failed, was cancelled, or is silent. Null: nothing is known to be
 * wrong.
 */
export function whyLook(run: EndedRun, now: number): string | null {
  const silence = stalledMs(run, now)
  return silence === null ? whyEnded(run) : `no event for ${duration(silence)}`
}

/** One line for each cause, nearest first: `because ConnectionRefusedError: …`. */
export function causeLines({ causes }: Pick<Failure, 'causes'>): string[] {
  return causes.map((cause) => `because ${failureLine(cause, null)}`)
}

/** Text for a failed run without an event that gives the reason, such as an imported one. */
export const BY_OUTCOME = 'failed by its recorded outcome'
/**
 * For a list: adds the policies that matched the run's calls, because a call that one of them blocked may be the
 * reason.
 */
export function byOutcome({ policyIds }: { policyIds: readonly string[] }): string {
  const [first, ...others] = policyIds
  if (first === undefined) return BY_OUTCOME
  // The policy comes first, because a narrow list cuts the end.
  return `policy ${first}${others.length > 0 ? ` and ${others.length} more` : ''} matched a call; ${BY_OUTCOME}`
}
/** The reason of a run that the stalled rule closed. */
export const WENT_SILENT = 'its process went silent'
/** Shown below `WENT_SILENT`: the exact cause is unknown. */
export const SILENT_CAUSES = 'It was killed, ran out of memory or lost its connection.'

type Payload = Readonly<Record<string, unknown>>

export interface ToldEvent {
  eventType: string
  label: string
  payload: Payload
}

export const FAILURE_CHARS = { errorClass: 200, message: 500, stack: 16_384, name: 255 } as const
const CAUSES = 10
/** Only this much of a longer text is searched. */
const SEARCHED_CHARS = 65_536

/** Whether the event is an error, for counts and filters. An end event that has only the status FAILED is no error. */
export function isErrorEvent(eventType: string, payload: Payload): boolean {
  if (eventType === 'ERROR') return true
  if (eventType === 'TOOL_CALL') return isFailedCall(payload)
  const isEnd = ENDS.has(eventType) && payload['status'] === 'FAILED'
  if (!isEnd && !STEPS.has(eventType)) return false
  const { error, exception, message, reason } = payload
  return isSet(error) || isSet(exception) || (isEnd && (isSet(message) || isSet(reason)))
}

/** Null: the event has no failure. A failed outcome has one even without any detail. */
export function failureOf(event: ToldEvent): Failure | null {
  const { eventType, label, payload } = event
  const isEnd = ENDS.has(eventType) && payload['status'] === 'FAILED'
  if (!isEnd && !isErrorEvent(eventType, payload)) return null
  const toldFailures = [payload['exception'], payload['error']].filter(isSet).map(readError)
  // Group calls that never ran by their reason, whatever text the model was answered.
  if (eventType === 'TOOL_CALL') toldFailures.unshift({ ...NOTHING, errorClass: neverRanCode(payload) })
  // Only the message: type and name of an end event do not belong to the error.
  if (isEnd) toldFailures.push(readError({ message: payload['message'] ?? payload['reason'] }))
  if (eventType === 'ERROR') {
    toldFailures.push(readError(payload), { ...NOTHING, errorClass: asClass(payload['code']) ?? asClass(label) })
  }
  return { place: placeOf(event), ...merged(toldFailures) }
}

/**
 * Why a run was cancelled: the signal, the abort, or the words of the host. Null: the event does not end a cancelled
 * run, or gives no reason.
 */
export function cancellationOf({ eventType, label, payload }: ToldEvent): Failure | null {
  if (!ENDS.has(eventType) || payload['status'] !== 'CANCELLED') return null
  const { exception, error, message, reason } = payload
  const mergedFailure = merged([
    ...[exception, error].filter(isSet).map(readError),
    readError({ message: message ?? reason }),
  ])
  if (mergedFailure.errorClass === null && mergedFailure.message === null) return null
  return { place: placeOf({ eventType, label, payload }), ...mergedFailure }
}

/** The same in one line: `SIGTERM: The process was ended by SIGTERM.` */
export function whyCancelled(eventType: string, payload: Payload): string | null {
  const cancelFacts = cancellationOf({ eventType, label: '', payload })
  return cancelFacts && failureLine(cancelFacts, null)
}

const ENDS: ReadonlySet<string> = new Set(['SESSION_OUTCOME', 'AGENT_END'])
const STEPS: ReadonlySet<string> = new Set(['LLM_CALL', 'AGENT_STEP'])

const isSet = (value: unknown) => value !== undefined && value !== null && value !== false

function placeOf({ eventType, label, payload }: ToldEvent): FailurePlace {
  const named = (kind: FailurePlace['kind'], name: unknown) => ({ kind, name: lineOf(name, FAILURE_CHARS.name) })
  if (eventType === 'TOOL_CALL') return named('tool', payload['toolName'] ?? label)
  if (eventType === 'LLM_CALL') return named('model', payload['model'])
  if (eventType === 'AGENT_STEP' || eventType === 'AGENT_END') return named('step', label)
  if (eventType === 'ERROR' && isSet(payload['toolName'])) return named('tool', payload['toolName'])
  if (eventType === 'ERROR' && isSet(payload['model'])) return named('model', payload['model'])
  return { kind: 'run', name: null }
}

type Told = Omit<Failure, 'place'>

const NOTHING: Told = { errorClass: null, message: null, stack: null, causes: [] }

/** Merges failures: each fact comes from the first failure that has it. */
function merged(toldFailures: readonly Told[]): Told {
  const first = <Fact>(read: (one: Told) => Fact | null): Fact | null => {
    for (const one of toldFailures) if (read(one) !== null) return read(one)
    return null
  }
  return {
    errorClass: first(({ errorClass }) => errorClass),
    message: first(({ message }) => message),
    stack: first(({ stack }) => stack),
    causes: toldFailures.find(({ causes }) => causes.length > 0)?.causes ?? [],
  }
}

/** Reads an error in the forms of SDKs, frameworks, OpenTelemetry and people. */
function readError(error: unknown): Told {
  if (Array.isArray(error)) return error.length > 0 ? readError(textOrFields(error[0])) : NOTHING
  if (typeof error === 'string') return readText(error)
  if (typeof error !== 'object' || error === null) return NOTHING
  const read = (...names: string[]): string | null => {
    for (const name of names) {
      const value = Object.hasOwn(error, name) ? (error as Record<string, unknown>)[name] : undefined
      if (typeof value === 'string' && value.trim() !== '') return value
    }
    return null
  }
  const stack = read('stack', 'stacktrace', 'exception.stacktrace')
  const message = read('message', 'exception.message', 'detail')
  const named = lineOf(read('type', 'name', 'exception.type'), FAILURE_CHARS.errorClass)
  const codeFailure = { ...NOTHING, errorClass: classByCode(named, error) }
  const ofMessage = message === null ? NOTHING : readText(message, codeFailure.errorClass)
  const ofStack = stack === null ? NOTHING : { ...readText(stack, codeFailure.errorClass), stack: cutStack(stack) }
  return merged([{ ...codeFailure, causes: causesIn(error) }, ofMessage, ofStack])
}

/** Error names in OpenAI's and Anthropic's clients. */
const BY_STATUS = new Map([
  [400, 'BadRequestError'],
  [401, 'AuthenticationError'],
  [403, 'PermissionDeniedError'],
  [404, 'NotFoundError'],
  [408, 'TimeoutError'],
  [409, 'ConflictError'],
  [422, 'UnprocessableEntityError'],
  [429, 'RateLimitError'],
])

/** Minified classes are all named Error: their status or code distinguishes them. */
function classByCode(named: string | null, error: object): string | null {
  if (named !== 'Error') return named
  const { status, code } = error as { status?: unknown; code?: unknown }
  if (typeof status === 'number' && status >= 400) {
    return BY_STATUS.get(status) ?? (status >= 500 ? 'InternalServerError' : `Error [${status}]`)
  }
  const text = typeof code === 'string' || typeof code === 'number' ? lineOf(String(code), 100) : null
  // Node prints a code in this form.
  return text === null ? named : `Error [${text}]`
}

/** A list of errors inside a list is not followed. */
const textOrFields = (value: unknown) => (Array.isArray(value) ? null : value)

function causesIn(error: object): FailedWith[] {
  const causes = Object.hasOwn(error, 'causes') ? (error as { causes: unknown }).causes : undefined
  if (!Array.isArray(causes)) return []
  return causes.slice(0, CAUSES).flatMap((cause: unknown) => {
    const { errorClass, message } = readError(textOrFields(cause))
    return errorClass === null && message === null ? [] : [{ errorClass, message }]
  })
}

const TRACEBACK = 'Traceback (most recent call last):'
const FRAME = /\n[ \t]{1,16}at /
/** The lines between the tracebacks of Python's chained exceptions. */
const CHAINED =
  /^(?:During handling of the above exception, another exception occurred|The above exception was the direct cause of the following exception):$/m
/** Lines that introduce a cause in Java, JavaScript and .NET. */
const CAUSED_BY = /^[ \t]{0,16}(?:Caused by: |\[cause\]: |---> )(.{1,1000})/gm

/** A text such as `TimeoutError: no answer`, perhaps with a stack. `known`: its class, if it is known. */
function readText(text: string, known: string | null = null): Told {
  const searched = text.length > SEARCHED_CHARS ? endsOf(text, SEARCHED_CHARS / 2, SEARCHED_CHARS / 2) : text
  if (searched.includes(TRACEBACK)) {
    const parts = searched.split(CHAINED).filter((tracePart) => tracePart.includes(TRACEBACK))
    const [own, ...causes] = parts.toReversed().map((raisedHead) => headOf(raisedIn(raisedHead), null))
    return { ...(own ?? headOf(searched, known)), stack: cutStack(text), causes: causes.slice(0, CAUSES) }
  }
  const head = headOf(searched.trimStart(), known)
  if (!FRAME.test(searched)) return { ...head, stack: null, causes: [] }
  const causes = [...searched.matchAll(CAUSED_BY)].slice(0, CAUSES).map(([, cause = '']) => headOf(cause, null))
  return { ...head, stack: cutStack(text), causes }
}

/** The line of a traceback that names the exception: the first after its frames that is not indented. */
function raisedIn(traceback: string): string {
  const frame = traceback.lastIndexOf('\n  File "')
  return /^\S.*/m.exec(traceback.slice(frame + 1))?.[0] ?? ''
}

/** `Class: message`, or a message, or a class alone. */
function headOf(text: string, known: string | null): FailedWith {
  const line = lineOf(text, SEARCHED_CHARS)
  if (line === null || line === LEFT_OUT) return { errorClass: known, message: null }
  const [, name = '', message = ''] = /^([\w$.]{1,200})(?::\s*(.*))?$/s.exec(line) ?? []
  const isNamed = known === null ? asClass(name) !== null : name === known || known.endsWith(`.${name}`)
  if (isNamed) return { errorClass: known ?? name, message: lineOf(message, FAILURE_CHARS.message) }
  return { errorClass: known, message: lineOf(line, FAILURE_CHARS.message) }
}

/** Stands for an error's text in metadata-only mode. */
const LEFT_OUT = '[left out]'

/** Whether a word names a class of errors: it ends like one, or has a module or a second word. */
function asClass(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > FAILURE_CHARS.errorClass) return null
  return /^(?:[A-Za-z_$][\w$]*\.)*[A-Z][\w$]*$/.test(value) && /[a-z][A-Z]|\.|(?:Error|Exception)$/.test(value)
    ? value
    : null
}

function lineOf(value: unknown, chars: number): string | null {
  if (typeof value !== 'string') return null
  const line = /\S[^\r\n\u2028\u2029]*/.exec(value.slice(0, SEARCHED_CHARS))?.[0].trimEnd()
  return line === undefined ? null : shortenedText(line, chars)
}

function cutStack(stack: string): string {
  const tail = FAILURE_CHARS.stack / 2
  const cut = stack.length > FAILURE_CHARS.stack ? endsOf(stack, tail - 64, tail) : stack
  return cut.toWellFormed().replaceAll('\0', '\u{FFFD}')
}

function endsOf(text: string, head: number, tail: number): string {
  return `${text.slice(0, head)}\n… [cut: ${text.length - head - tail} characters]\n${text.slice(-tail)}`
}

/** The comment by which an issue recognizes a tape of one of its runs. */
export const tapeComment = (run: string, checksum: string): string =>
  `A test: the tape of the run ${run}, checksum ${checksum}`

export function tapeOfComment(text: string): { run: string; checksum: string } | null {
  const [, run, checksum] = /^A test: the tape of the run (.*), checksum ([0-9a-f]{64})$/s.exec(text) ?? []
  return run === undefined || checksum === undefined ? null : { run, checksum }
}
