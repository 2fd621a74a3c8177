import type { TSchema } from 'typebox'
import { ERRORS, Problem, type ErrorCode } from './errors.ts'
import { Event, EventInput, EventRow, Rejection } from './event.ts'
import { Approval, NewApproval } from './approval.ts'
import { IssueRecordInput, IssueRecordReceipt } from './issue-record.ts'
import { ApprovalAftermath, JudgedCall, RunApprovals } from './operator/aftermath.ts'
import { AuditEntry } from './operator/audit.ts'
import { ApiKey, CreatedApiKey, NewApiKey } from './operator/api-key.ts'
import { ApprovalCard, ApprovalGroup, DecisionOutcome, OperatorApproval } from './operator/approval.ts'
import { Deployment, DeploymentChange, PublicationResult } from './operator/deployment.ts'
import { Check } from './operator/doctor.ts'
import { Invitation, Operator } from './operator/operator.ts'
import { Me } from './operator/me.ts'
import { Environment } from './operator/environment.ts'
import { NewPolicy, NewPolicyVersion, Policy, PolicyVersion } from './operator/policy.ts'
import { Prompt, PromptVersion, PromptVersionRow } from './operator/prompt.ts'
import { IssueRecord, IssueRecordDetail } from './operator/issue-record.ts'
import { AffectedAgent, AffectedRun, Facts, Issue, IssueActivity, IssueGroup, IssueSummary } from './operator/issue.ts'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from './operator/routes.ts'
import { EventTrace, OperatorRun } from './operator/run.ts'
import { NewSimulation, Simulation, SimulationResult } from './operator/simulation.ts'
import { CreatedOperatorToken, NewOperatorToken, OperatorToken } from './operator/token.ts'
import { UsageHour } from './operator/usage.ts'
import { VersionDiff } from './operator/version.ts'
import { Workspace } from './operator/workspace.ts'
import { accessOf, errorsOf } from './route-errors.ts'
import type { Route } from './route.ts'
import { PUBLIC_PREFIX, ROUTES } from './routes.ts'
import { Run, RunDetail, Usage } from './run.ts'
import { RuntimeConfig, RuntimePolicy, RuntimePrompt } from './runtime-config.ts'

/** Schemas that get a name in the documents; all others are written in place. */
const NAMED: Record<string, TSchema> = {
  AffectedAgent,
  AffectedRun,
  ApiKey,
  Approval,
  ApprovalAftermath,
  ApprovalCard,
  ApprovalGroup,
  AuditEntry,
  Check,
  CreatedApiKey,
  CreatedOperatorToken,
  DecisionOutcome,
  Deployment,
  DeploymentChange,
  Environment,
  Event,
  EventInput,
  EventRow,
  EventTrace,
  Facts,
  Issue,
  IssueActivity,
  IssueGroup,
  IssueRecord,
  IssueRecordDetail,
  IssueRecordInput,
  IssueRecordReceipt,
  IssueSummary,
  JudgedCall,
  Invitation,
  Me,
  NewApiKey,
  NewApproval,
  NewOperatorToken,
  NewPolicy,
  NewPolicyVersion,
  NewSimulation,
  Operator,
  OperatorApproval,
  OperatorRun,
  OperatorToken,
  Policy,
  PolicyVersion,
  Problem,
  Prompt,
  PromptVersion,
  PromptVersionRow,
  PublicationResult,
  Rejection,
  Run,
  RunApprovals,
  RunDetail,
  RuntimeConfig,
  RuntimePolicy,
  RuntimePrompt,
  Simulation,
  SimulationResult,
  Usage,
  UsageHour,
  VersionDiff,
  Workspace,
}

const NAMES = new Map<unknown, string>(Object.entries(NAMED).map(([name, schema]) => [schema, name]))

interface Api {
  title: string
  description: string
  prefix: string
  routes: Record<string, Route>
  /** By name; any one of them will do. */
  security: Record<string, object>
}

type Json = Record<string, unknown>

/** OpenAPI 3.1 document of the public interface. `serverUrl` is the origin, `version` the product's. */
export function publicDocument(version: string): Json {
  return document(version, {
    title: 'Tacho',
    description: 'Records what agents do. The API key selects the workspace and environment.',
    prefix: PUBLIC_PREFIX,
    routes: ROUTES,
    security: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' } },
  })
}

/** OpenAPI 3.1 document of the operator API. */
export function operatorDocument(version: string): Json {
  return document(version, {
    title: 'Tacho operator API',
    description:
      'Everything operators do. Scripts send an operator token; people sign in and are known by a cookie, with which ' +
      'requests that change something must come from a page of the same origin.',
    prefix: OPERATOR_PREFIX,
    routes: OPERATOR_ROUTES,
    security: {
      operatorToken: { type: 'http', scheme: 'bearer' },
      session: { type: 'apiKey', in: 'cookie', name: 'tacho.session_token' },
    },
  })
}

function document(version: string, api: Api): Json {
  const used = new Set<string>()
  const paths: Record<string, Json> = {}
  for (const [operationId, route] of Object.entries(api.routes)) {
    const path = (paths[route.path] ??= {})
    path[route.method.toLowerCase()] = operation(operationId, route, used)
  }
  const schemas: Json = {}
  // A named schema may use further ones: the set grows while it is walked.
  for (const name of used) schemas[name] = inner(NAMED[name], used)
  return {
    openapi: '3.1.0',
    info: {
      title: api.title,
      version,
      description: api.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: api.prefix }],
    security: Object.keys(api.security).map((name) => ({ [name]: [] })),
    paths,
    components: { securitySchemes: api.security, schemas },
  }
}

function operation(operationId: string, route: Route, used: Set<string>): Json {
  const needed = neededFor(route)
  const body = route.body && {
    requestBody: { required: true, content: { 'application/json': { schema: reference(route.body, used) } } },
  }
  return {
    operationId,
    summary: route.summary,
    ...(needed === null ? {} : { description: needed }),
    ...(accessOf(route) === 'anyone' ? { security: [] } : {}),
    tags: [route.tag],
    parameters: [
      ...parameters('path', route.params, used),
      ...parameters('query', route.query, used),
      ...parameters('header', route.headers, used),
      ...(route.tagged ? [IF_NONE_MATCH] : []),
    ],
    ...body,
    responses: {
      [route.status]: {
        description: 'Success',
        ...(route.tagged ? { headers: { ETag: TAG } } : {}),
        content: { [route.replyType ?? 'application/json']: { schema: reference(route.reply, used) } },
      },
      ...(route.tagged ? { 304: { description: 'Unchanged; no body', headers: { ETag: TAG } } } : {}),
      ...errorResponses(route, used),
    },
  }
}

/** What the caller must have, for people; null: nothing in particular. */
function neededFor(route: Route): string | null {
  if (route.scopes.length > 0) return `Scopes: ${route.scopes.join(', ')}`
  const access = accessOf(route)
  if (access === null || access === 'anyone' || access === 'signed-in') return null
  return access === 'installation' ? 'For owners of the whole installation' : `Role: ${access}`
}

const TAG = { description: 'Names what is served; changes with it', schema: { type: 'string' } }
const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'ETag of what the client has; a list and * are taken too',
  schema: { type: 'string' },
}

function parameters(place: 'path' | 'query' | 'header', schema: Route['query'], used: Set<string>): Json[] {
  if (!schema) return []
  const required = new Set(schema.required)
  return Object.entries(schema.properties).map(([name, property]) => ({
    name,
    in: place,
    required: required.has(name),
    schema: reference(property, used),
  }))
}

function errorResponses(route: Route, used: Set<string>): Json {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of errorsOf(route)) {
    const { status } = ERRORS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const responses: Json = {}
  for (const [status, these] of byStatus) {
    responses[status] = {
      description: these.map((code) => `${code}: ${ERRORS[code].title}`).join('. '),
      content: { 'application/problem+json': { schema: reference(Problem, used) } },
    }
  }
  return responses
}

/** The schema with every named one inside it replaced by a reference. */
function reference(schema: unknown, used: Set<string>): unknown {
  const name = NAMES.get(schema)
  if (name === undefined) return inner(schema, used)
  used.add(name)
  return { $ref: `#/components/schemas/${name}` }
}

function inner(value: unknown, used: Set<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => reference(item, used))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, reference(item, used)]))
}
