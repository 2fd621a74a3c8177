/**
 * Decides which failures that the service saw belong together, and how the issue is called. The facts depend on the
 * failure alone, never on when it arrived or on other failures.
 */
import { hash } from 'node:crypto'
import type { Facts } from '@tacho/contract/operator/issue.ts'
import { canonicalFacts, type Grouping } from './issue.ts'
import { messageTemplate } from './message-template.ts'
import { ownFrame } from './own-frame.ts'

/** Increase this when the hash input changes, so that old fingerprints stay valid. */
const VERSION = 'v2'
const FACT_CHARS = 200
const TITLE_CHARS = 200

/** What failed: the detection type of the issue. */
export type FailureKind =
  | 'RUN_FAILED'
  | 'TOOL_FAILED'
  | 'MODEL_FAILED'
  | 'STEP_FAILED'
  | 'ERROR_RECORDED'
  | 'RUN_STALLED'

export interface SeenFailure {
  kind: FailureKind
  /** Its external id, or else its name. */
  agent: string
  toolName: string | null
  model: string | null
  error: SeenError
}

export interface SeenError {
  /** Its class. */
  type: string | null
  message: string | null
  stack: string | null
  /** The nearest first. */
  causes: readonly { type: string | null; message: string | null }[]
}

/** Source: decision 0106. A failure without any error of its own belongs to its agent. */
export function failureGrouping({ kind, agent, toolName, model, error }: SeenFailure): Grouping {
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
  const all = Object.entries({ ...said, agent: isBare ? agent : null })
  const facts: Facts = Object.fromEntries(
    all.flatMap(([name, value]) => (value ? [[name, shortened(value, FACT_CHARS)]] : [])),
  )
  return { facts, fingerprint: `${VERSION}:${hash('sha256', canonicalFacts(facts))}` }
}

function template(message: string | null): string | null {
  return message === null ? null : messageTemplate(message) || null
}

/** In a line: `TimeoutError in get_order: no answer after …`. The facts name the agent by its id. */
export function failureTitle(
  { detectionType, errorType, toolName, model, frame, message, cause, agent }: Facts,
  agentName: string,
): string {
  if (agent !== undefined) {
    const stalled = detectionType === 'run_stalled' ? 'went silent: no event and no end' : 'failed without an error'
    return shortened(`${agentName} ${stalled}`, TITLE_CHARS)
  }
  const type = errorType?.split('.').at(-1)
  const place =
    toolName !== undefined ? ` in ${toolName}` : model !== undefined ? ` from ${model}` : frame && ` in ${frame}`
  const subject = toolName ?? model ?? frame
  const what = type !== undefined ? `${type}${place ?? ''}` : subject ? `${subject} failed` : 'Error'
  const [text, root] = [spoken(message), spoken(cause)]
  const why = text === null || root === null ? (text ?? root) : `${text} (${root})`
  return shortened(why === null ? what : `${what}: ${why}`, TITLE_CHARS)
}

/** A template whose variable parts meet has one mark for them; one that is nothing but a mark says nothing. */
function spoken(template: string | undefined): string | null {
  const text = template?.replaceAll(/…[….]+/g, '…').replace(/: …$/, '')
  return text === undefined || text === '…' ? null : text
}

function shortened(text: string, chars: number): string {
  const line = text.toWellFormed().replaceAll(/\s+/g, ' ').trim()
  return line.length <= chars ? line : `${line.slice(0, chars - 1).toWellFormed()}…`
}
