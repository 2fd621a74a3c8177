import type { Config } from '../config/config.ts'
import type { Cursors } from '../domain/cursor.ts'
import type { WebhookMessage } from '../domain/webhook.ts'
import type { PriceTable } from '../prices/price-table.ts'
import type { SessionRow } from '../storage/operators.ts'
import type { Storage } from '../storage/storage.ts'
import type { OperatorTokenRow } from '../storage/operator-tokens.ts'
import type { WorkKind } from '../storage/work.ts'
import type { ReportAddress } from './allowed-addresses.ts'
import type { FoundApiKey } from './api-key.ts'
import type { ConfigurationClientsSeen } from './configuration-clients.ts'
import type { ConfigurationCache } from './configuration-cache.ts'
import type { CredentialCache } from './credential-cache.ts'
import type { Judge } from './judge.ts'
import type { LostRequestCounts } from './lost-requests.ts'
import type { Metrics } from './metrics.ts'
import type { RateLimit } from './rate-limit.ts'
import type { SignInLibrary } from './operator/sign-in/library.ts'
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
  configurationClients: ConfigurationClientsSeen
  lostRequests: LostRequestCounts
  cursors: Cursors
  rateLimit: RateLimit
  judge: Judge
  memory: BodyMemory
  replies: ReplyMemory
  pushPublicKey: string
  metrics: Metrics
  prices: PriceTable
  work: { wake(kind: WorkKind): void }
  /** Returns why the address is refused, to append to the field name; null if it is allowed. */
  checkWebhookUrl: (url: string) => Promise<string | null>
  /** To public and allowed addresses only. */
  sendToWebhook: (message: WebhookMessage) => Promise<{ ok: true } | { ok: false; error: string }>
  now: () => number
  draining: () => boolean
}
