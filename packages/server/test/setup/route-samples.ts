/** Requests made from the routes tables: a valid body for each row, and a tenant with one object for each path parameter. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { SCOPES, type Route } from '@tacho/contract/web/route.ts'
import { PUBLIC_PREFIX, ROUTES } from '@tacho/contract/web/routes.ts'
import type { TSchema } from 'typebox'
import { PASSWORD } from '../http/people/browser.ts'
import { eventually } from './eventually.ts'
import { issueRecord, reviewed } from './issue-service.ts'
import { event, type Answer, type Request, type Service } from './service.ts'

export interface Row {
  name: string
  prefix: string
  route: Route
}

export const PUBLIC_ROWS = rowsOf(PUBLIC_PREFIX, ROUTES)
export const OPERATOR_ROWS = rowsOf(OPERATOR_PREFIX, OPERATOR_ROUTES)
export const ROWS = [...PUBLIC_ROWS, ...OPERATOR_ROWS]

function rowsOf(prefix: string, table: Record<string, Route>): Row[] {
  return Object.entries(table).map(([name, route]) => ({ name, prefix, route }))
}

/** The keywords of JSON Schema that the contract uses. */
export interface JsonSchema {
  type?: string | string[]
  enum?: unknown[]
  format?: string
  pattern?: string
  anyOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean
  items?: JsonSchema
  minItems?: number
  minLength?: number
  minimum?: number
}

/** Values of members whose schemas do not describe them completely. */
const MEANT: Record<string, () => unknown> = {
  condition: () => 'true',
  content: () => 'text',
  email: () => `${randomUUID()}@example.com`,
  follows: () => '1',
  inputHash: () => 'ab'.repeat(32),
  name: () => randomUUID(),
  clientRequestId: () => randomUUID(),
  newPassword: () => PASSWORD,
  policyId: () => randomUUID(),
  timestamp: () => Date.now(),
  detectedAt: () => Date.now(),
  timeoutMs: () => 60_000,
  url: () => 'https://203.0.114.7/hook',
  version: () => '1',
}

/** A valid value with only the required members. */
export function sampleOf(given: TSchema | JsonSchema, name = ''): unknown {
  const schema = given as JsonSchema
  if (schema.enum) return schema.enum[0]
  if (Object.hasOwn(MEANT, name)) return MEANT[name]?.()
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'object') {
    const entries = Object.entries(schema.properties ?? {}).filter(([member]) => schema.required?.includes(member))
    return Object.fromEntries(entries.map(([member, of]) => [member, sampleOf(of, member)]))
  }
  if (type === 'array') return Array.from({ length: schema.minItems ?? 1 }, () => sampleOf(schema.items ?? {}, name))
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return true
  if (schema.format === 'uuid') return randomUUID()
  if (schema.format === 'date-time') return new Date(Date.now() + 60_000).toISOString()
  return 'x'.repeat(Math.max(1, schema.minLength ?? 1))
}

/** The body of a request to the row, as JSON text; undefined if it has none. */
export function bodyOf({ body }: Route): unknown {
  return body && sampleOf(body)
}

/** Query parameters without which a row answers 400. */
export function queryOf({ query }: Route): Record<string, string> {
  const required = (query as JsonSchema | undefined)?.required ?? []
  return Object.fromEntries(required.map((name) => [name, valueOf(query as JsonSchema, name)]))
}

function valueOf(query: JsonSchema, name: string): string {
  const schema = query.properties?.[name] ?? {}
  // Parameters with this name are ids in one route, times in another, and versions in a third.
  if (name === 'ids') return randomUUID()
  if (schema.format === 'date-time') return new Date().toISOString()
  return schema.enum ? String(schema.enum[0]) : '1'
}

export function addressOf(
  { prefix, route }: Row,
  ids: Readonly<Record<string, string>>,
  given: Record<string, string> = queryOf(route),
): string {
  const words = (route.params as JsonSchema | undefined)?.properties ?? {}
  const sample = (name: string) => {
    const [first] = words[name]?.enum ?? []
    return typeof first === 'string' ? first : randomUUID()
  }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? sample(name)))
  const query = new URLSearchParams(given).toString()
  return prefix + path + (query === '' ? '' : `?${query}`)
}

/** A text in a body or query that may name an object, and the schema of the object around it. */
export interface NamingPlace {
  /** Members and array positions from the body or query on. */
  at: readonly (string | number)[]
  schema: JsonSchema
  /** Values of the member `kind` beside it, which say what the text names. */
  kinds: readonly unknown[]
}

/** Members whose texts name no object. A new member counts as a name until it is listed here. */
const NAMES_NOTHING = new Set(
  'comment condition content cursor description inputHash label lines minCost model name note payload q reason score text toolName unscored url value'.split(
    ' ',
  ),
)

/** The places of a body or query that may name an object: ids, and all texts that are not known to name nothing. */
export function namingPlaces(given: TSchema | undefined): NamingPlace[] {
  const places: NamingPlace[] = []
  function walk(schema: JsonSchema, at: (string | number)[], kinds: readonly unknown[]): void {
    for (const one of schema.anyOf ?? []) walk(one, at, kinds)
    const beside = schema.properties?.['kind']?.enum ?? []
    for (const [name, of] of Object.entries(schema.properties ?? {})) walk(of, [...at, name], beside)
    if (schema.items) walk(schema.items, [...at, 0], kinds)
    const name = at.findLast((step) => typeof step === 'string') ?? ''
    const isText = [schema.type].flat().includes('string') && !schema.enum && schema.format !== 'date-time'
    if (isText && !NAMES_NOTHING.has(name)) places.push({ at, schema, kinds })
  }
  walk((given ?? {}) as JsonSchema, [], [])
  return places
}

/** Copies of the sample with the value at the place, one for each kind that it can name. */
export function samplesWith(sample: unknown, { at, kinds }: NamingPlace, value: string): unknown[] {
  return (kinds.length === 0 ? [undefined] : kinds).map((kind) => {
    const whole: unknown = structuredClone(sample ?? {})
    let inner = whole as Record<string | number, unknown>
    for (const [index, step] of at.slice(0, -1).entries()) {
      inner = (inner[step] ??= typeof at[index + 1] === 'number' ? [] : {}) as typeof inner
    }
    inner[at.at(-1) ?? ''] = value
    if (kind !== undefined) inner['kind'] = kind
    return whole
  })
}

export interface PopulatedTenant {
  workspaceId: string
  environmentId: string
  apiKey: string
  /** Path parameters by name. */
  ids: Record<string, string>
}

/** A workspace with one environment and one object of each kind. Webhooks must be allowed to reach 127.0.0.1. */
export async function populate(service: Service, name: string): Promise<PopulatedTenant> {
  const { workspaceId, environmentId } = await service.newTenant(name)
  const [workspace, environment] = [`/workspaces/${workspaceId}`, `/environments/${environmentId}`]
  const make = async (path: string, body: unknown = {}) => idOf(await service.operator(path, { body }))
  const person = `${name}@example.com`
  const invitation = await service.operator<{ link: string }>(`${workspace}/invitations`, {
    body: { email: person, role: 'viewer' },
  })
  const token = invitation.body.link.split('#')[1]
  const accepted = await service.operator('/invitations/accept', { body: { token, password: PASSWORD } })
  assert.equal(accepted.status, 200, accepted.text)
  const people = await service.operator<{ items: { id: string }[] }>(`${workspace}/operators`)

  const apiKey = await service.newKey({ scopes: [...SCOPES], environmentId })
  const api = (path: string, request: Request) =>
    service.api(path, { ...request, headers: { 'x-api-key': apiKey, 'x-service-client-id': name } })
  const [runId, eventId] = [`run of ${name}`, `event of ${name}`]
  assert.equal((await api('/events/batch', { body: [event({ runId, eventId })] })).status, 200)
  const approval = { clientRequestId: name, toolName: 'transfer', inputHash: 'ab'.repeat(32), runId }
  const approvalId = idOf(await api('/firewall-approvals', { body: approval }))
  const record = await api('/issue-records', { body: issueRecord({ runId, eventId }) })
  await reviewed(service, environmentId)
  const agents = await service.operator<{ items: { id: string }[] }>(`${environment}/agents`)
  const issues = await service.operator<{ items: { id: string }[] }>(`${environment}/issues`)
  const policy = { policyId: `policy-of-${name}`, condition: 'true', severity: 'LOW', action: 'WARN' }
  assert.equal((await service.operator(`${workspace}/policies`, { body: policy })).status, 201)
  const grantId = await newGrant(name)
  const prompt = await service.operator<{ promptId: string }>(`${workspace}/prompts`, { body: { name, content: 'x' } })
  const searching = await service.operator(`${environment}/search/settings`, { body: { enabled: true } })
  assert.equal(searching.status, 200, searching.text)
  await eventually(async () => {
    const settings = await service.operator<{ state: string }>(`${environment}/search/settings`)
    return settings.body.state === 'ON'
  }, 'the index of the search')
  async function newGrant(named: string): Promise<string> {
    const asking = { policyId: `asking-of-${named}`, condition: 'tool.name == "pay"', severity: 'LOW' }
    const body = { ...asking, action: 'REQUIRE_APPROVAL' }
    assert.equal((await service.operator(`${workspace}/policies`, { body })).status, 201)
    const items = [{ kind: 'policy', id: asking.policyId, version: '1' }]
    assert.equal((await service.operator(`${environment}/deployments`, { body: { items } })).status, 200)
    const { policyId } = asking
    const asked = { ...approval, clientRequestId: `to pay for ${named}`, toolName: 'pay', policyId }
    const decision = { decision: 'APPROVED', grant: { scope: 'tool' } }
    const id = idOf(await api('/firewall-approvals', { body: asked }))
    await make(`${environment}/approvals/${id}/decision`, decision)
    const { body: grants } = await service.operator<{ items: { id: string }[] }>(`${environment}/approvals/grants`)
    return grants.items[0]?.id ?? ''
  }
  const alert = { name: 'Many runs fail', kind: 'error_rate', threshold: 20 }
  const webhookId = await make(`${environment}/webhooks`, { url: 'http://127.0.0.1:9/' })
  return {
    workspaceId,
    environmentId,
    apiKey,
    ids: {
      workspaceId,
      environmentId,
      runId,
      eventId,
      approvalId,
      grantId,
      subjectId: approvalId,
      webhookId,
      agentId: agents.body.items[0]?.id ?? '',
      recordId: (record.body as { recordId: string }).recordId,
      issueId: issues.body.items[0]?.id ?? '',
      operatorId: people.body.items[0]?.id ?? '',
      policyId: policy.policyId,
      promptId: prompt.body.promptId,
      version: '1',
      keyId: await make(`${environment}/keys`, { name: 'k', scopes: ['usage:read'] }),
      tokenId: await make(`${workspace}/tokens`, { name: 't', role: 'viewer' }),
      invitationId: await make(`${workspace}/invitations`, { email: `next.${person}`, role: 'viewer' }),
      simulationId: await make(`${environment}/simulations`, { condition: 'true', action: 'WARN', days: 1 }),
      alertId: await make(`${environment}/alerts`, alert),
      scoreId: await make(`${environment}/runs/${encodeURIComponent(runId)}/scores/give`, {
        name: 'quality',
        value: 1,
      }),
      runViewId: await make(`${environment}/run-views`, { name: 'Failed', query: { status: 'FAILED' } }),
      erasureId: await make(`${environment}/erasures`, { kind: 'run', id: 'never recorded' }),
      deliveryId: await make(`${environment}/webhooks/${webhookId}/test`),
    },
  }
}

function idOf({ status, body, text }: Answer): string {
  assert.ok(status >= 200 && status < 300, text)
  return (body as { id: string }).id
}
