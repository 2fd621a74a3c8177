import type { Config } from '../../config/config.ts'
import type { Cursors } from './paging.ts'
import type { WebhookMessage } from '../../domain/messages/webhook.ts'
import type { PriceTable } from '../../prices/price-table.ts'
import type { SessionRow, OperatorTokenRow } from '../../storage/people/operators.ts'
import type { Storage } from '../../storage/storage.ts'
import type { WorkKind } from '../../storage/engine/work.ts'
import type { ReportAddress } from '../tenants/allowed-addresses.ts'
import type { FoundApiKey } from '../tenants/api-key.ts'
import type { ConfigurationClientsSeen } from '../policies/configuration-clients.ts'
import type { ConfigurationCache } from '../policies/configuration-cache.ts'
import type { WaitingKeys } from '../tenants/waiting-keys.ts'
import type { CredentialCache } from '../tenants/credential-cache.ts'
import type { BodyValidator } from '../record/body-validator.ts'
import type { LostRequestCounts } from '../record/lost-requests.ts'
import type { Metrics } from './metrics.ts'
import type { RateLimit } from '../tenants/rate-limit.ts'
import type { SignInLibrary } from '../people/sign-in-library.ts'
import type { BodyMemory } from './read-body.ts'
import type { ReplyMemory } from './reply-memory.ts'

export interface Deps {
  config: Config
  version: string
  storage: Storage
  keys: CredentialCache<FoundApiKey>
  operatorTokens: CredentialCache<OperatorTokenRow>
  sessions: CredentialCache<SessionRow>
  reportAddress: ReportAddress
  signIn: SignInLibrary
  publicUrl: () => string
  configurations: ConfigurationCache
  waitingKeys: WaitingKeys
  configurationClients: ConfigurationClientsSeen
  lostRequests: LostRequestCounts
  cursors: Cursors
  rateLimit: RateLimit
  bodyValidator: BodyValidator
  memory: BodyMemory
  replies: ReplyMemory
  pushPublicKey: string
  metrics: Metrics
  prices: PriceTable
  work: { wake(kind: WorkKind): void }
  /** Returns why the address is refused, to append to the field name; null if it is allowed. */
  checkWebhookUrl: (url: string) => Promise<string | null>
  /** Sends only to public and allowed addresses. */
  sendToWebhook: (message: WebhookMessage) => Promise<{ ok: true } | { ok: false; error: string }>
  now: () => number
  draining: () => boolean
}
