/** What a directory may read about this service (RFC 7643 5 to 7). */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { GROUP_SCHEMA, USER_SCHEMA } from './scim.ts'

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
