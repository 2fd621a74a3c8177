/**
 * Provisioning by a directory, such as Entra ID or Okta. Off without TACHO_SCIM_TOKEN, which is the only credential
 * accepted here, and is valid nowhere else.
 */
import { hash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { ERRORS } from '@tacho/contract/web/errors.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sameHash } from '../../domain/people/credential.ts'
import { hasMoreValues } from '../../domain/web/json-body.ts'
import {
  RESOURCE_TYPES,
  SCHEMAS,
  SERVICE_PROVIDER,
  attributeOf,
  equalityIn,
  ERROR_SCHEMA,
  groupChangeIn,
  groupResource,
  LIST_SCHEMA,
  operationsIn,
  personChangeIn,
  personResource,
  readGroup,
  readPerson,
  SCIM_PATH,
  ScimFault,
} from '../../domain/people/scim.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { AuditEntry, DirectoryPersonRow, PersonChange } from '../../storage/people/operators.ts'
import type { Deps } from '../web/deps.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { readBody } from '../web/read-body.ts'
import { isRefusal, REPLY_HEADERS } from '../web/reply-error.ts'
import { entryOf } from './audit.ts'
import { bearerOf } from './caller.ts'
import type { OperatorLimits } from './attempts.ts'

const TYPE = 'application/scim+json'
const PERSON_FIELDS = new Map([
  ['username', 'userName'],
  ['externalid', 'externalId'],
  ['id', 'id'],
  ['emails', 'email'],
  ['emails.value', 'email'],
  ['emails[type eq "work"].value', 'email'],
] as const)
const GROUP_FIELDS = new Map([
  ['displayname', 'displayName'],
  ['externalid', 'externalId'],
  ['id', 'id'],
] as const)
const KNOWN = new Set(['ServiceProviderConfig', 'ResourceTypes', 'Schemas', 'Users', 'Groups'])
const NO_PERSON = 'The User does not exist'
const NO_GROUP = 'The Group does not exist'

interface Call {
  request: FastifyRequest
  reply: FastifyReply
  id: string
  query: Record<string, string | undefined>
  body: () => Promise<unknown>
}

export function scimRoutes(app: FastifyInstance, deps: Deps, limits: OperatorLimits): void {
  const { storage, config, memory, now, publicUrl } = deps
  if (config.scimToken === null) return
  const tokenHash = hash('sha256', config.scimToken)
  const roles = [...(config.groupRoles ?? [])]
  const base = () => publicUrl() + SCIM_PATH

  route('GET', '/ServiceProviderConfig', async () => SERVICE_PROVIDER)
  route('GET', '/ResourceTypes', async () => listOf(RESOURCE_TYPES))
  route('GET', '/ResourceTypes/:id', async ({ id }) => one(RESOURCE_TYPES.find((type) => type.id === id)))
  route('GET', '/Schemas', async () => listOf(SCHEMAS))
  route('GET', '/Schemas/:id', async ({ id }) => one(SCHEMAS.find((schema) => schema.id === id)))

  route('GET', '/Users', async ({ query }) => {
    const { offset, limit } = sliceOf(query)
    const { total, rows } = await storage.listDirectoryPeople(equalityIn(query['filter'], PERSON_FIELDS), {
      offset,
      limit,
    })
    return listOf(
      rows.map((row) => personResource(row, base())),
      total,
      offset,
    )
  })
  route('GET', '/Users/:id', async ({ id }) => personResource(await personOf(id), base()))
  route('POST', '/Users', async (call) => {
    const scimPerson = readPerson(await call.body())
    const id = await savedPerson(
      storage.createDirectoryPerson(uuidv7(now()), scimPerson, roles, template(call.request)),
    )
    return created(call, personResource(await personOf(id), base()))
  })
  route('PUT', '/Users/:id', async (call) => changePerson(call, readPerson(await call.body())))
  route('PATCH', '/Users/:id', async (call) => changePerson(call, personChangeIn(operationsIn(await call.body()))))
  route('DELETE', '/Users/:id', async ({ request, id }) => {
    if (!(await storage.deleteDirectoryPerson(id, template(request)))) throw new ScimFault(404, NO_PERSON)
    await refresh()
    return null
  })

  route('GET', '/Groups', async ({ query }) => {
    const withMembers = !excludesMembers(query)
    const { offset, limit } = sliceOf(query)
    const slice = { offset, limit: withMembers ? Math.min(limit, LIMITS.directoryGroupPage) : limit }
    const filter = equalityIn(query['filter'], GROUP_FIELDS)
    const { total, rows } = await storage.listDirectoryGroups(filter, slice, withMembers)
    return listOf(
      rows.map((row) => groupResource(row, base(), withMembers)),
      total,
      offset,
    )
  })
  route('GET', '/Groups/:id', async ({ id, query }) => groupOf(id, !excludesMembers(query)))
  route('POST', '/Groups', async (call) => {
    const id = uuidv7(now())
    const scimGroup = readGroup(await call.body())
    checkGroup(await storage.createDirectoryGroup(id, scimGroup, roles, template(call.request)))
    await refresh()
    return created(call, await groupOf(id, true))
  })
  route('PUT', '/Groups/:id', async (call) => changeGroup(call, readGroup(await call.body())))
  route('PATCH', '/Groups/:id', async (call) => changeGroup(call, groupChangeIn(operationsIn(await call.body()))))
  route('DELETE', '/Groups/:id', async ({ request, id }) => {
    if (!(await storage.deleteDirectoryGroup(id, roles, template(request)))) throw new ScimFault(404, NO_GROUP)
    await refresh()
    return null
  })

  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    route(method, '/*', async ({ request }) => {
      const [path = ''] = request.url.slice(SCIM_PATH.length + 1).split('?', 1)
      // RFC 7644 3.4.3: a provider without search must answer this, so that a client falls back to GET.
      if (/(?:^|\/)\.search$/.test(path)) throw new ScimFault(501, 'Search by GET with a filter')
      const [resource = ''] = path.split('/', 1)
      throw KNOWN.has(resource)
        ? new ScimFault(405, 'The method is not supported here')
        : new ScimFault(404, 'It does not exist')
    })
  }

  /** Registers a route. Null: the reply is 204. */
  function route(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    answer: (call: Call) => Promise<object | null>,
  ): void {
    app.route({
      method,
      url: SCIM_PATH + path,
      handler: async (request, reply) => {
        const tooMany = limits.byAddress(request, reply)
        if (tooMany) {
          void reply.header('retry-after', tooMany.more.retryAfterSeconds ?? 1)
          return fault(reply, new ScimFault(429, 'Too many requests'))
        }
        const token = bearerOf(request)
        if (token === undefined || !sameHash(hash('sha256', token), tokenHash)) {
          void reply.header('www-authenticate', 'Bearer realm="tacho"')
          return fault(reply, new ScimFault(401, 'Send the header Authorization: Bearer <TACHO_SCIM_TOKEN>'))
        }
        const { id = '' } = request.params as { id?: string }
        const query = request.query as Record<string, string | undefined>
        try {
          const body = await answer({ request, reply, id, query, body: () => bodyOf(request, reply) })
          if (body === null) return await reply.code(204).headers(REPLY_HEADERS).send()
          return await send(reply, chosenAttributes(body, query))
        } catch (error) {
          if (error instanceof ScimFault) return fault(reply, error)
          if (!isRefusal(error)) throw error
          const { status } = ERRORS[error.code]
          return fault(
            reply,
            new ScimFault(
              status,
              error.detail ?? ERRORS[error.code].title,
              status === 400 ? 'invalidSyntax' : undefined,
            ),
          )
        }
      },
    })
  }

  async function bodyOf(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const holder = holderOf(request)
    const maxBytes = LIMITS.directoryBodyBytes
    const bytes = await readBody(request.raw, reply.raw, { maxBytes, memory, holder, binaryType: TYPE })
    if (isRefusal(bytes)) throw bytes
    if (!isUtf8(bytes)) throw new ScimFault(400, 'The body must be UTF-8', 'invalidSyntax')
    if (hasMoreValues(bytes, LIMITS.bodyValues)) throw new ScimFault(413, 'The body has too many values', 'tooMany')
    try {
      return JSON.parse(bytes.toString()) as unknown
    } catch {
      throw new ScimFault(400, 'The body must be JSON', 'invalidSyntax')
    }
  }

  async function personOf(id: string): Promise<DirectoryPersonRow> {
    const { rows } = await storage.listDirectoryPeople({ field: 'id', value: id }, { offset: 0, limit: 1 })
    if (rows[0] === undefined) throw new ScimFault(404, NO_PERSON)
    return rows[0]
  }

  async function groupOf(id: string, withMembers: boolean): Promise<object> {
    const { rows } = await storage.listDirectoryGroups({ field: 'id', value: id }, { offset: 0, limit: 1 }, withMembers)
    if (rows[0] === undefined) throw new ScimFault(404, NO_GROUP)
    return groupResource(rows[0], base(), withMembers)
  }

  async function changePerson({ request, id }: Call, change: PersonChange): Promise<object> {
    await savedPerson(storage.changeDirectoryPerson(id, change, roles, template(request)))
    return personResource(await personOf(id), base())
  }

  async function savedPerson(saving: ReturnType<typeof storage.createDirectoryPerson>): Promise<string> {
    const saved = await saving
    if (saved.outcome === 'saved') {
      await refresh()
      return saved.id
    }
    if (saved.outcome === 'unknown') throw new ScimFault(404, NO_PERSON)
    if (saved.outcome === 'full') throw new ScimFault(413, 'There are too many people', 'tooMany')
    throw new ScimFault(409, 'Another User has this userName or address', 'uniqueness')
  }

  async function changeGroup({ request, id }: Call, change: Parameters<typeof storage.changeDirectoryGroup>[1]) {
    checkGroup(await storage.changeDirectoryGroup(id, change, roles, template(request)))
    await refresh()
    return groupOf(id, true)
  }

  /** This node applies the change at once; the others follow within 5 seconds. */
  async function refresh(): Promise<void> {
    const askedAt = performance.now()
    const revision = await storage.controlRevision()
    for (const cache of [deps.operatorTokens, deps.sessions]) cache.observeRevision(revision, askedAt)
  }

  function template(request: FastifyRequest): AuditEntry {
    const actor = { kind: 'token', id: 'scim', name: 'SCIM' } as const
    const scope = { actor, workspace: null, environment: null }
    return entryOf({ scope, request }, now(), 'directory.change', { kind: 'operator', id: 'scim' }, {})
  }
}

function checkGroup(outcome: 'saved' | 'taken' | 'unknown' | 'no_member' | 'full'): void {
  if (outcome === 'unknown') throw new ScimFault(404, NO_GROUP)
  if (outcome === 'taken') throw new ScimFault(409, 'Another Group has this displayName', 'uniqueness')
  if (outcome === 'no_member') throw new ScimFault(400, 'A member is no User of this directory', 'invalidValue')
  if (outcome === 'full') throw new ScimFault(413, 'There are too many groups', 'tooMany')
}

function one<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new ScimFault(404, 'It does not exist')
  return value
}

/** RFC 7644 3.9, but only for whole attributes. */
function chosenAttributes(body: object, { attributes, excludedAttributes }: Call['query']): object {
  const [wanted, unwanted] = [namesIn(attributes), namesIn(excludedAttributes)]
  if (wanted.length === 0 && unwanted.length === 0) return body
  const choose = (resource: object) =>
    Object.fromEntries(
      Object.entries(resource).filter(([name]) => {
        const key = name.toLowerCase()
        return (
          key === 'id' || key === 'schemas' || (wanted.length === 0 ? !unwanted.includes(key) : wanted.includes(key))
        )
      }),
    )
  return 'Resources' in body ? { ...body, Resources: (body.Resources as object[]).map(choose) } : choose(body)
}

const namesIn = (list: string | undefined): string[] =>
  String(list ?? '')
    .split(',')
    .map((name) => attributeOf(name).split(/[.[]/, 1)[0] ?? '')
    .filter((name) => name !== '')

function excludesMembers({ excludedAttributes }: Call['query']): boolean {
  return namesIn(excludedAttributes).includes('members')
}

function sliceOf({ startIndex = '1', count = String(LIMITS.directoryPage) }: Call['query']) {
  const numbers = [startIndex, count].map((text) => (/^-?\d{1,9}$/.test(text) ? Number(text) : Number.NaN))
  const [start = Number.NaN, most = Number.NaN] = numbers
  if (Number.isNaN(start) || Number.isNaN(most))
    throw new ScimFault(400, 'startIndex and count must be whole numbers', 'invalidValue')
  return { offset: Math.max(start, 1) - 1, limit: Math.min(Math.max(most, 0), LIMITS.directoryPage) }
}

function listOf(resources: readonly object[], total = resources.length, offset = 0): object {
  const shown = { totalResults: total, startIndex: offset + 1, itemsPerPage: resources.length }
  return { schemas: [LIST_SCHEMA], ...shown, Resources: resources }
}

function created({ reply }: Call, resource: { meta?: unknown }): object {
  const { location } = resource.meta as { location: string }
  void reply.code(201).header('location', location)
  return resource
}

function send(reply: FastifyReply, body: object): FastifyReply {
  return reply
    .headers(REPLY_HEADERS)
    .type(`${TYPE}; charset=utf-8`)
    .serializer((value: unknown) => JSON.stringify(value))
    .send(body)
}

function fault(reply: FastifyReply, { status, message, scimType }: ScimFault): FastifyReply {
  const kind = scimType === undefined ? {} : { scimType }
  return send(reply.code(status), { schemas: [ERROR_SCHEMA], status: String(status), ...kind, detail: message })
}
