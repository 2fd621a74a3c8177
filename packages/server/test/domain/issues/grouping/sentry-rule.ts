/**
 * Sentry's default grouping, as its documentation and its published source describe it in 2026. It groups by the class of the
 * error and of each of its causes, with the frames in the app's own code. Without such frames, it uses all frames. Without a
 * stack, it uses the message, after replacing numbers, ids, dates, addresses and similar parts.
 * https://docs.sentry.io/concepts/data-management/event-grouping/
 */
import type { Frame, RecordedFailure } from './recorded-failures.ts'

export function sentryGroup({ failure, frames }: RecordedFailure): string {
  const { error, kind, agent } = failure
  // Sentry's clients send nothing without an error. People report such failures with a text, so group by kind and agent.
  if (error.type === null && error.message === null) return `${kind} of ${agent}`
  const own = frames.filter(({ isOwn }) => isOwn)
  const counted = own.length > 0 ? own : frames
  const stack = counted.map(frameKey)
  const text = error.message === null ? '' : parameterised(error.message)
  const itself = [error.type, stack.length > 0 ? stack : text]
  const causes = error.causes.map(({ type, message }) => [type, parameterised(message ?? '')])
  return JSON.stringify([itself, ...causes])
}

function frameKey({ name, path, source }: Frame): string[] {
  const file = path.split('/').at(-1)?.toLowerCase() ?? ''
  const line = source.split(/\s+/).join(' ')
  return [file, name.split('.').at(-1) ?? '', line.length > 120 ? '' : line]
}

const HEX = '[0-9a-fA-F]'
const REPLACED: [string, RegExp][] = [
  ['email', /[\w.!#$%&'*+/=?^`{|}~-]+@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*/g],
  ['url', /\b(?:wss?|https?|ftp):\/\/\S+/g],
  ['hostname', /\b(?:[a-zA-Z0-9-]{1,63}\.)+(?:com|net|org|io|dev|app|de|uk|eu|me)\b/g],
  ['ip', /\b\d{1,3}(?:\.\d{1,3}){3}\b/g],
  ['uuid', new RegExp(`\\b${HEX}{8}-${HEX}{4}-${HEX}{4}-${HEX}{4}-${HEX}{12}\\b`, 'g')],
  ['sha1', new RegExp(`\\b${HEX}{40}\\b`, 'g')],
  ['md5', new RegExp(`\\b${HEX}{32}\\b`, 'g')],
  [
    'date',
    /\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\b\d{1,2}:\d{2}(?::\d{2})?\b/g,
  ],
  ['duration', /\b\d+ms\b|\b\d+(?:\.\d+)?s\b/g],
  ['hex', new RegExp(`\\b0[xX]${HEX}+\\b|\\b(?=[a-f]*\\d)[0-9a-f]{8,128}\\b|\\b(?=[A-F]*\\d)[0-9A-F]{8,128}\\b`, 'g')],
  ['float', /-?\b\d+\.\d+\b/g],
  ['int', /(?:(?<!\w)-)?\b\d{1,7}\b/g],
  ['quoted', /(?<==)(?:'[^']+'|"[^"]+")/g],
  ['bool', /(?<==)(?:[Tt]rue|[Ff]alse)/g],
]

export function parameterised(message: string): string {
  return REPLACED.reduce((text, [name, sought]) => text.replaceAll(sought, `<${name}>`), message)
}
