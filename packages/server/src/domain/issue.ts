/**
 * Which records belong together: stable facts are taken from a record, normalised, and hashed. What is taken must not
 * depend on when the record arrived or on what else had arrived by then, or one failure would become several issues.
 */
import { hash } from 'node:crypto'
import type { Facts } from '@tacho/contract/operator/issue.ts'
import type { RecordInReview } from '../storage/issue-records.ts'

/** Grows with every change of what is hashed, so that old fingerprints stay what they were. */
const VERSION = 'v1'
/** Longer facts are shortened to this, with their hash, so that an issue can always be shown. */
const FACT_CHARS = 200
const TOOLS = 100
const TITLE_CHARS = 200

export interface Grouping {
  fingerprint: string
  facts: Facts
}

export function groupingOf(record: Pick<RecordInReview, 'detectionType' | 'policyId' | 'payload'>): Grouping {
  const facts = factsOf(record.detectionType, record.policyId, JSON.parse(record.payload) as Record<string, unknown>)
  return { facts, fingerprint: `${VERSION}:${hash('sha256', canonicalFacts(facts))}` }
}

/** Source: interface, "Grouping": detector type, policy, failed tool, tool set, reason code, model context. */
function factsOf(detectionType: string, policyId: string | null, payload: Record<string, unknown>): Facts {
  const facts = {
    detectionType: fact(detectionType),
    model: fact(payload['model']),
    policyId: fact(policyId),
    reasonCode: fact(payload['reasonCode']),
    toolName: fact(payload['toolName']),
    tools: toolSet(payload['tools']),
  }
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
}

/** Canonical JSON (RFC 8785): the facts stand in the order of their names, and are texts and lists of texts only. */
export function canonicalFacts(facts: Facts): string {
  const names = Object.keys(facts).toSorted() as (keyof Facts)[]
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, facts[name]])))
}

/** A text as it is compared: lower case, white space at the ends removed and inside made one space. */
export function normalised(text: string): string {
  const plain = text.toWellFormed().toLowerCase().trim().replaceAll(/\s+/g, ' ')
  if (plain.length <= FACT_CHARS) return plain
  const digest = `sha256:${hash('sha256', plain)}`
  return `${plain
    .slice(0, FACT_CHARS - digest.length - 1)
    .toWellFormed()
    .trimEnd()} ${digest}`
}

/** Undefined: there is no such fact. A number counts as its text, for reason codes are often numbers. */
function fact(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value
  return (typeof text === 'string' && normalised(text)) || undefined
}

function toolSet(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const tools = [...new Set(value.map(fact).filter((tool) => tool !== undefined))].toSorted()
  if (tools.length === 0) return undefined
  if (tools.length <= TOOLS) return tools
  const rest = `sha256:${hash('sha256', JSON.stringify(tools.slice(TOOLS - 1)))}`
  return [...tools.slice(0, TOOLS - 1), rest].toSorted()
}

/** One line for people. */
export function issueTitle({ detectionType, toolName, tools, reasonCode, policyId, model }: Facts): string {
  const tool = toolName ?? (tools && `tools ${tools.join(', ')}`)
  const parts = [detectionType, tool, reasonCode, policyId && `policy ${policyId}`, model && `model ${model}`]
  const title = parts.filter((part) => part !== undefined).join(' · ') || 'detection'
  return title.length <= TITLE_CHARS ? title : `${title.slice(0, TITLE_CHARS - 1).toWellFormed()}…`
}
