/** SCIM 2.0 (RFC 7643 and 7644), as far as directories use it: people and groups, equality filters and PATCH. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject, type Json } from '@tacho/contract/record/payload-reader.ts'
import type {
  DirectoryGroup,
  DirectoryPersonRow,
  GivenPerson,
  GroupChange,
  PersonChange,
} from '../../storage/people/operators.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { isEmail, lowerCase } from './identity.ts'
import { isStorableText, parsedJson } from '../web/text.ts'

export const SCIM_PATH = '/scim/v2'
const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'
const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const ERROR_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:Error'
export const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'

/** An error by RFC 7644 3.12, which handlers throw. */
export class ScimFault extends Error {
  readonly status: number
  readonly scimType: string | undefined

  constructor(status: number, detail: string, scimType?: string) {
    super(detail)
    this.status = status
    this.scimType = scimType
  }
}

const invalid = (detail: string): ScimFault => new ScimFault(400, detail, 'invalidValue')

/** A name cannot contain the space that ends it, so a text of spaces takes only linear time. */
const EQUALITY = /^([\w.:]+(?:\[type eq "work"\][\w.]*)?)\s+eq\s+("(?:[^"\\]|\\.)*")$/i

/** `name eq "value"`, the only form that Entra ID and Okta send. */
export function equalityIn<Field extends string>(filter: string | undefined, fields: ReadonlyMap<string, Field>) {
  if (filter === undefined) return null
  if (filter.length > LIMITS.directoryFilterChars)
    throw new ScimFault(400, `The filter must have at most ${LIMITS.directoryFilterChars} characters`, 'invalidFilter')
  const [, name = '', text = ''] = EQUALITY.exec(String(filter).trim()) ?? []
  const field = fields.get(attributeOf(name))
  const value = parsedJson(text)
  if (field === undefined || typeof value !== 'string' || !isStorableText(value)) {
    throw new ScimFault(
      400,
      `The filter must be <attribute> eq "value", with ${[...fields.keys()].join(', ')}`,
      'invalidFilter',
    )
  }
  return { field, value }
}

/** The attribute's path in lower case, without the URN of a core schema. */
export function attributeOf(path: string): string {
  return path
    .trim()
    .toLowerCase()
    .replace(/^urn:ietf:params:scim:schemas:core:2\.0:(user|group):/, '')
}

export function personResource(row: DirectoryPersonRow, base: string): Json {
  return {
    schemas: [USER_SCHEMA],
    id: row.id,
    ...(row.externalId !== null && { externalId: row.externalId }),
    userName: row.userName,
    displayName: row.name,
    emails: [{ value: row.email, type: 'work', primary: true }],
    active: row.active === 1,
    meta: metaOf('User', row, `${base}/Users/${row.id}`),
  }
}

export function groupResource(row: DirectoryGroup, base: string, withMembers: boolean): Json {
  const members = row.members.map(({ id, name }) => ({
    value: id,
    display: name,
    type: 'User',
    $ref: `${base}/Users/${id}`,
  }))
  return {
    schemas: [GROUP_SCHEMA],
    id: row.id,
    ...(row.externalId !== null && { externalId: row.externalId }),
    displayName: row.name,
    ...(withMembers && { members }),
    meta: metaOf('Group', row, `${base}/Groups/${row.id}`),
  }
}

function metaOf(
  resourceType: string,
  { createdAt, updatedAt }: { createdAt: number; updatedAt: number },
  location: string,
) {
  return { resourceType, created: isoTime(createdAt), lastModified: isoTime(updatedAt), location }
}

/** Reads a whole resource. Attributes that are not stored are ignored. */
export function readPerson(scimPerson: unknown): GivenPerson {
  if (!isObject(scimPerson)) throw new ScimFault(400, 'The body must be a User', 'invalidSyntax')
  const fields = lowered(scimPerson)
  const userName = textOf('userName', fields['username'], LIMITS.emailChars)
  if (userName === null) throw invalid('userName is required')
  const email = emailOf(fields['emails']) ?? userName
  if (!isEmail(email)) throw invalid('A person needs an e-mail address, in emails or as userName')
  const name =
    textOf('displayName', fields['displayname'], LIMITS.nameChars, true) ?? nameOf(fields['name']) ?? userName
  const externalId = textOf('externalId', fields['externalid'], LIMITS.directoryTextChars)
  return { userName, externalId, email: lowerCase(email), name: cut(name), active: activeOf(fields['active']) }
}

function nameOf(scimPerson: unknown): string | null {
  if (!isObject(scimPerson)) return null
  const { formatted, givenname, familyname } = lowered(scimPerson)
  const parts = [givenname, familyname].filter((namePart) => typeof namePart === 'string' && namePart.trim() !== '')
  return textOf('name', formatted, 1_000, true) ?? textOf('name', parts.join(' '), 1_000, true)
}

const cut = (name: string): string => Array.from(name).slice(0, LIMITS.nameChars).join('')

/** The primary address, else the one of type work or without a type. Others, such as home, are ignored. */
function emailOf(scimPerson: unknown): string | null {
  if (scimPerson === undefined || scimPerson === null) return null
  const emails = (Array.isArray(scimPerson) ? scimPerson : [scimPerson])
    .slice(0, 100)
    .map((one) => (isObject(one) ? lowered(one) : { value: one }))
  const isOf = (type: unknown, word: string) => typeof type === 'string' && type.toLowerCase() === word
  const chosen =
    emails.find((one: Json) => isTrue(one['primary'])) ??
    emails.find((one: Json) => isOf(one['type'], 'work')) ??
    emails.find((one: Json) => isOf(one['type'] ?? '', ''))
  return textOf('emails', chosen?.['value'], LIMITS.emailChars)
}

const isTrue = (value: unknown): boolean =>
  value === true || (typeof value === 'string' && value.toLowerCase() === 'true')

/** Entra ID sends "False". Undefined: absent, so it stays unchanged. */
function activeOf(scimPerson: unknown): boolean | undefined {
  if (scimPerson === undefined || scimPerson === null) return undefined
  const word = typeof scimPerson === 'string' ? scimPerson.toLowerCase() : scimPerson
  if (word === true || word === 'true') return true
  if (word === false || word === 'false') return false
  throw invalid('active must be true or false')
}

/** Null: absent or empty. `isCut`: the caller shortens a longer text. */
function textOf(name: string, fieldValue: unknown, chars: number, isCut = false): string | null {
  if (fieldValue === undefined || fieldValue === null || fieldValue === '') return null
  const fits =
    typeof fieldValue === 'string' &&
    isStorableText(fieldValue) &&
    (isCut ? fieldValue.length <= 10_000 : Array.from(fieldValue).length <= chars)
  if (!fits) throw invalid(`${name} must be a text of at most ${chars} characters`)
  return fieldValue.trim() === '' ? null : fieldValue.trim()
}

/** Attribute names are case-insensitive (RFC 7643 2.1). */
function lowered(scimValue: Json): Json {
  return Object.fromEntries(Object.entries(scimValue).map(([name, value]) => [attributeOf(name), value]))
}

interface Operation {
  op: 'add' | 'replace' | 'remove'
  path: string
  value: unknown
}

export function operationsIn(body: unknown): Operation[] {
  const scimOperations = isObject(body) ? lowered(body)['operations'] : null
  if (
    !Array.isArray(scimOperations) ||
    scimOperations.length === 0 ||
    scimOperations.length > LIMITS.directoryOperations
  ) {
    throw new ScimFault(400, `Operations must have 1 to ${LIMITS.directoryOperations} entries`, 'invalidSyntax')
  }
  return scimOperations.flatMap((one): Operation[] => {
    const { op: word, path = '', value } = isObject(one) ? lowered(one) : {}
    const op = (['add', 'replace', 'remove'] as const).find(
      (known) => typeof word === 'string' && known === word.toLowerCase(),
    )
    if (op === undefined || typeof path !== 'string')
      throw new ScimFault(400, 'op must be add, replace or remove', 'invalidSyntax')
    if (path !== '') return [{ op, path: attributeOf(path), value }]
    if (!isObject(value) || op === 'remove')
      throw new ScimFault(400, 'Without a path, value must be an object', 'noTarget')
    return Object.entries(value).map(([name, part]) => ({ op, path: attributeOf(name), value: part }))
  })
}

const ADDRESS = /^emails(\[(type eq "work"|primary eq "?true"?)\])?(\.value)?$/

/** A person always has a user name, an address and a state, so removing the address or state changes nothing. */
export function personChangeIn(operations: readonly Operation[]): PersonChange {
  const change: PersonChange = {}
  for (const { op, path, value: newValue } of operations) {
    const value = op === 'remove' ? null : newValue
    if (ADDRESS.test(path)) {
      const email = path === 'emails' ? emailOf(value) : emailOf(withoutType(value))
      if (email !== null && !isEmail(email)) throw invalid('emails must have an e-mail address')
      if (email !== null) change.email = lowerCase(email)
    } else if (path === 'name' || path === 'name.formatted') {
      // Only the whole name is stored, so a part alone changes nothing.
      const name = nameOf(path === 'name' ? value : { formatted: value })
      if (name !== null) change.name = cut(name)
    } else if (path === 'username') {
      const userName = textOf('userName', value, LIMITS.emailChars)
      if (userName === null) throw invalid('userName is required')
      change.userName = userName
    } else if (path === 'displayname') {
      const name = textOf('displayName', value, LIMITS.nameChars, true)
      change.name = name === null ? null : cut(name)
    } else if (path === 'externalid') change.externalId = textOf('externalId', value, LIMITS.directoryTextChars)
    else if (path === 'active') change.active = activeOf(value) ?? change.active
    else if (path === 'id' || path === 'meta' || path === 'schemas')
      throw new ScimFault(400, 'id, meta and schemas cannot be changed', 'mutability')
  }
  return change
}

/** The path has already chosen the address, so ignore its type. */
function withoutType(value: unknown): unknown {
  const one = Array.isArray(value) ? (value as unknown[])[0] : value
  return isObject(one) ? lowered(one)['value'] : one
}

export function readGroup(scimGroup: unknown): GroupChange & { name: string } {
  if (!isObject(scimGroup)) throw new ScimFault(400, 'The body must be a Group', 'invalidSyntax')
  const fields = lowered(scimGroup)
  const name = textOf('displayName', fields['displayname'], LIMITS.directoryTextChars)
  if (name === null) throw invalid('displayName is required')
  const externalId = textOf('externalId', fields['externalid'], LIMITS.directoryTextChars)
  return { name, externalId, members: membersIn(fields['members'] ?? []), add: [], remove: [] }
}

export function groupChangeIn(operations: readonly Operation[]): GroupChange {
  const change: GroupChange = { add: [], remove: [] }
  for (const { op, path, value } of operations) {
    const [, one] = /^members\[\s*value\s+eq\s+"([^"]{1,100})"\s*\]$/.exec(path) ?? []
    if (one !== undefined && op === 'remove') remove(change, [one])
    else if (path === 'members' && op === 'add') add(change, membersIn(value))
    else if (path === 'members' && op === 'remove' && value !== undefined && value !== null)
      remove(change, membersIn(value))
    else if (path === 'members')
      Object.assign(change, { members: op === 'remove' ? [] : membersIn(value), add: [], remove: [] })
    else if (path === 'displayname' && op !== 'remove')
      change.name = textOf('displayName', value, LIMITS.directoryTextChars) ?? undefined
    else if (path === 'externalid')
      change.externalId = op === 'remove' ? null : textOf('externalId', value, LIMITS.directoryTextChars)
    else if (path !== 'id' && path !== 'schemas' && path !== 'meta')
      throw new ScimFault(400, 'A Group has displayName, externalId and members', 'invalidPath')
  }
  return change
}

function add(change: GroupChange, ids: string[]): void {
  change.remove = change.remove.filter((id) => !ids.includes(id))
  change.add.push(...ids)
}

function remove(change: GroupChange, ids: string[]): void {
  change.add = change.add.filter((id) => !ids.includes(id))
  change.remove.push(...ids)
}

function membersIn(memberList: unknown): string[] {
  const members = Array.isArray(memberList) ? memberList : [memberList]
  if (members.length > LIMITS.directoryMembers)
    throw new ScimFault(413, `At most ${LIMITS.directoryMembers} members at a time`, 'tooMany')
  return members.map((one) => {
    const id = isObject(one) ? lowered(one)['value'] : null
    if (typeof id !== 'string' || !isStorableText(id) || id.length > 100)
      throw invalid('A member is { "value": "<id of a User>" }')
    return id.toLowerCase()
  })
}

// --- what a directory may read about this service (RFC 7643 5 to 7)

const attribute = (name: string, description: string, more: object = {}) => ({
  name,
  type: 'string',
  multiValued: false,
  description,
  required: false,
  caseExact: false,
  mutability: 'readWrite',
  returned: 'default',
  uniqueness: 'none',
  ...more,
})

const USER_ATTRIBUTES = [
  attribute('userName', 'Name of the person in the directory', { required: true, uniqueness: 'server' }),
  attribute('displayName', 'Name to show to others'),
  attribute('emails', 'Its address: the primary one is kept', {
    type: 'complex',
    multiValued: true,
    required: true,
    subAttributes: [
      attribute('value', 'E-mail address', { required: true }),
      attribute('type', 'Always work', { mutability: 'readOnly' }),
      attribute('primary', 'Always true', { type: 'boolean', mutability: 'readOnly' }),
    ],
  }),
  attribute('active', 'false ends sessions, roles and tokens at once', { type: 'boolean' }),
]

const GROUP_ATTRIBUTES = [
  attribute('displayName', 'Name of the group, as TACHO_GROUP_ROLES names it', {
    required: true,
    uniqueness: 'server',
  }),
  attribute('members', 'People of the group', {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      attribute('value', 'Id of a User', { mutability: 'immutable' }),
      attribute('display', 'Name of the person', { mutability: 'readOnly' }),
      attribute('type', 'Always User', { mutability: 'readOnly' }),
      attribute('$ref', 'Address of the User', {
        type: 'reference',
        referenceTypes: ['User'],
        mutability: 'immutable',
      }),
    ],
  }),
]

export const SCHEMAS = [
  {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
    id: USER_SCHEMA,
    name: 'User',
    description: 'A person',
    attributes: USER_ATTRIBUTES,
  },
  {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
    id: GROUP_SCHEMA,
    name: 'Group',
    description: 'A group of people',
    attributes: GROUP_ATTRIBUTES,
  },
]

export const RESOURCE_TYPES = [
  { id: 'User', name: 'User', endpoint: '/Users', schema: USER_SCHEMA },
  { id: 'Group', name: 'Group', endpoint: '/Groups', schema: GROUP_SCHEMA },
].map((type) => ({ schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'], ...type }))

const no = { supported: false }

export const SERVICE_PROVIDER = {
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
  patch: { supported: true },
  bulk: { ...no, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: LIMITS.directoryPage },
  changePassword: no,
  sort: no,
  etag: no,
  authenticationSchemes: [
    { type: 'oauthbearertoken', name: 'Bearer token', description: 'The token in TACHO_SCIM_TOKEN', primary: true },
  ],
}
