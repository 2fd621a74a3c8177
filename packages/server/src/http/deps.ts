/** Everything the routes need; main.ts makes it once. Files that are named here take single parts of it, never `Deps`. */
import type { Config } from '../config/config.ts'
import type { Cursors } from '../domain/cursor.ts'
import type { SessionRow } from '../storage/operators.ts'
import type { OperatorTokenRow, Storage } from '../storage/storage.ts'
import type { WorkKind } from '../storage/work.ts'
import type { FoundApiKey } from './api-key.ts'
import type { ConfigurationCache } from './configuration-cache.ts'
import type { CredentialCache } from './credential-cache.ts'
import type { Judge } from './judge.ts'
import type { Metrics } from './metrics.ts'
import type { RateLimit } from './rate-limit.ts'
import type { SignInLibrary } from './operator/sign-in/library.ts'
import type { BodyMemory } from './read-body.ts'
import type { ReplyMemory } from './reply-memory.ts'
import type { RouteOptions } from './serve-route.ts'

export interface Deps {
  config: Config
  version: string
  storage: Storage
  keys: CredentialCache<FoundApiKey>
  operatorTokens: CredentialCache<OperatorTokenRow>
  /** People who have signed in. */
  sessions: CredentialCache<SessionRow>
  signIn: SignInLibrary
  /** Where people reach the server, as far as it knows. */
  publicUrl: () => string
  configurations: ConfigurationCache
  cursors: Cursors
  rateLimit: RateLimit
  judge: Judge
  memory: BodyMemory
  replies: ReplyMemory
  /** Set for the operator API: creations are carried out once for each Idempotency-Key. */
  once?: RouteOptions['once']
  metrics: Metrics
  /** Whoever does background work: told when some was queued here. */
  work: { wake(kind: WorkKind): void }
  /** Why a webhook must not be sent to this address, in words that follow its name; or null. */
  checkWebhookUrl: (url: string) => Promise<string | null>
  /** Milliseconds since 1970. */
  now: () => number
  /** Whether the process has begun to drain. */
  draining: () => boolean
}
