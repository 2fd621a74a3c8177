/** The facts depend on the failure alone. Only the number of failures can make the store take broader ones. */
import { hash } from 'node:crypto'
import type { Facts } from '@tacho/contract/issues/issue.ts'
import { ownFrame } from '@tacho/contract/issues/stack-frame.ts'
import { canonicalFacts, type Grouping } from './issue.ts'
import { messageTemplate, VARIABLE } from './message-template.ts'

/** Increase this when the hash input changes, so that old fingerprints stay valid. */
const VERSION = 'v3'
/** Hash characters: enough that two places of one environment hardly ever collide. */
const FAMILY_CHARS = 16
const FACT_CHARS = 200
const TITLE_CHARS = 200

const KINDS = {
  RUN_FAILED: 'runs',
  TOOL_FAILED: 'tools',
  MODEL_FAILED: 'models',
  STEP_FAILED: 'steps',
  ERROR_RECORDED: 'errors',
  RUN_STALLED: 'silent runs',
}
export type FailureKind = keyof typeof KINDS

export interface SeenFailure {
  kind: FailureKind
  agent: string
  toolName: string | null
  model: string | null
  error: SeenError
}

export interface SeenError {
  type: string | null
  message: string | null
  stack: string | null
  causes: readonly { type: string | null; message: string | null }[]
}

export interface FailureGrouping extends Grouping {
  /** Broader, for messages of one place that vary too much. */
  place: Grouping
  kind: Grouping
  /** Fingerprints of a place begin with it. */
  family: string
}

/** Source: docs/decisions/0106-issues-from-what-fails.md. Without a place or an error of its own, a failure belongs to its agent. */
export function failureGrouping({ kind, agent, toolName, model, error }: SeenFailure): FailureGrouping {
  const root = error.causes.at(-1)
  const said = {
    detectionType: kind.toLowerCase(),
    errorType: error.type,
    cause: root ? [root.type, template(root.message)].filter(Boolean).join(': ') : null,
    frame: error.stack === null ? null : ownFrame(error.stack),
    message: template(error.message),
    model,
    toolName,
  }
  const isBare = error.type === null && said.message === null && toolName === null && model === null
  const isAnywhere = toolName === null && model === null && said.frame === null
  const { detectionType } = said
  const facts = factsOf({ ...said, agent: isBare ? agent : null })
  const place = factsOf({ ...said, cause: null, message: VARIABLE, agent: isAnywhere ? agent : null })
  const family = familyOf(place)
  return {
    ...grouping(facts, family),
    place: grouping(place, family),
    kind: grouping({ detectionType }, familyOf({ detectionType })),
    family,
  }
}

function factsOf(said: Partial<Record<keyof Facts, string | null>>): Facts {
  const all = Object.entries(said)
  return Object.fromEntries(all.flatMap(([name, value]) => (value ? [[name, shortened(value, FACT_CHARS)]] : [])))
}

const familyOf = (place: Facts): string => `${VERSION}:${hash('sha256', canonicalFacts(place)).slice(0, FAMILY_CHARS)}:`

const grouping = (facts: Facts, family: string): Grouping => ({
  facts,
  fingerprint: `${family}${hash('sha256', canonicalFacts(facts))}`,
})

function template(message: string | null): string | null {
  return message === null ? null : messageTemplate(message) || null
}

/** `TimeoutError in get_order: no answer after …`. The facts have the agent's id. */
export function failureTitle(
  { detectionType, errorType, toolName, model, frame, message, cause, agent }: Facts,
  agentName: string,
): string {
  if (agent !== undefined && message === undefined) {
    const stalled = detectionType === 'run_stalled' ? 'went silent: no event and no end' : 'failed without an error'
    return shortened(`${agentName} ${stalled}`, TITLE_CHARS)
  }
  const type = errorType?.split('.').at(-1)
  const where = toolName ?? frame ?? (agent === undefined ? undefined : agentName)
  const place =
    model !== undefined && toolName === undefined ? ` from ${model}` : where === undefined ? '' : ` in ${where}`
  const subject = toolName ?? model ?? frame
  const what = type !== undefined ? `${type}${place}` : subject ? `${subject} failed` : `Error${place}`
  const [text, root] = [spoken(message), spoken(cause)]
  const why = text === null || root === null ? (text ?? root) : `${text} (${root})`
  return shortened(why === null ? what : `${what}: ${why}`, TITLE_CHARS)
}

export const placeTitle = ({ place }: FailureGrouping, agentName: string): string =>
  failureTitle({ ...place.facts, message: 'many different messages' }, agentName)

export const kindTitle = (kind: FailureKind): string => `Many different failures of ${KINDS[kind]}`

function spoken(template: string | undefined): string | null {
  const text = template?.replaceAll(/…[….]+/g, '…').replace(/: …$/, '')
  return text === undefined || text === '…' ? null : text
}

function shortened(text: string, chars: number): string {
  const line = text.toWellFormed().replaceAll(/\s+/g, ' ').trim()
  return line.length <= chars ? line : `${line.slice(0, chars - 1).toWellFormed()}…`
}
