import Type, { type Static } from 'typebox'
import { cursor, nextCursor, pageLimit, time } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { CLIENT_STANDINGS } from '../engine/words.ts'

export const ClientStanding = Type.Enum([...CLIENT_STANDINGS], {
  $id: 'ClientStanding',
  description:
    'CURRENT: has the revision of the environment. UPDATING: had another one when it last asked, at most two minutes ' +
    'after the revision changed. BEHIND: had another one later than that. SILENT: last asked more than three minutes ' +
    'before another client did',
})
export type ClientStanding = (typeof CLIENT_STANDINGS)[number]

export const ConfigurationClient = Type.Object(
  {
    clientId: Type.String({ description: 'What it sends in X-Service-Client-ID; else the id of its API key' }),
    identifiedBy: Type.Enum(['client', 'key'], { description: 'Whether `clientId` is of the client or of the key' }),
    keyId: Type.String({ description: 'The API key of its last request' }),
    revision: Type.String({ description: 'The revision that it has' }),
    standing: ClientStanding,
    lastSeenAt: time('When it last asked for the configuration'),
  },
  { $id: 'ConfigurationClient', description: 'A client that asks for the runtime configuration of an environment' },
)
export type ConfigurationClient = Static<typeof ConfigurationClient>

const count = (description: string) => Type.Integer({ minimum: 0, description })

export const ConfigurationClientPage = Type.Object(
  {
    revision: Type.String({ description: "Revision of the environment's runtime configuration" }),
    counts: Type.Object(
      {
        current: count('Clients that have it'),
        updating: count('Clients that may still get it'),
        behind: count('Clients that should have it'),
        silent: count('Clients that stopped asking'),
      },
      { description: 'Counts over all clients of the environment, not only this page' },
    ),
    items: Type.Array(ConfigurationClient),
    nextCursor,
  },
  { $id: 'ConfigurationClientPage' },
)

export const ConfigurationClientsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  standing: Type.Optional(ClientStanding),
})
