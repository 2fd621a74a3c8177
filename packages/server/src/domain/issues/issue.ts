/** The facts must not depend on arrival time or on other records; otherwise one failure would become several issues. */
import { hash } from 'node:crypto'
import type { Facts } from '@tacho/contract/issues/issue.ts'
import type { RecordInReview } from '../../storage/issues/issue-records.ts'

/** Increase this when the hash input changes, so that old fingerprints stay valid. */
const VERSION = 'v1'
const FACT_CHARS = 200
const TOOLS = 100

export interface Grouping {
  fingerprint: string
  facts: Facts
}

export function groupingOf(record: Pick<RecordInReview, 'detectionType' | 'policyId' | 'payload'>): Grouping {
  const facts = factsOf(record.detectionType, record.policyId, JSON.parse(record.payload) as Record<string, unknown>)
  return { facts, fingerprint: `${VERSION}:${hash('sha256', canonicalFacts(facts))}` }
}

/** docs/issues.md lists these facts. No other field affects grouping. */
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

/** RFC 8785, for sorted facts that are only texts and lists of texts. */
export function canonicalFacts(facts: Facts): string {
  const names = Object.keys(facts).toSorted() as (keyof Facts)[]
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, facts[name]])))
}

export function normalised(text: string): string {
  const plain = text.toWellFormed().toLowerCase().trim().replaceAll(/\s+/g, ' ')
  if (plain.length <= FACT_CHARS) return plain
  const digest = `sha256:${hash('sha256', plain)}`
  return `${plain
    .slice(0, FACT_CHARS - digest.length - 1)
    .toWellFormed()
    .trimEnd()} ${digest}`
}

/** A number counts as text, because reason codes are often numbers. */
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
