import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { isIPv6, type AddressInfo } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { createApp } from '../app.ts'
import { bodyMemory, type Config, requestMemory, type RequestMemory } from '../config/config.ts'
import { applyHeld } from '../domain/approvals/grant.ts'
import { parseApiKey, parseOperatorToken, sessionCredential } from '../domain/people/credential.ts'
import { cursors } from '../http/web/paging.ts'
import { newPushKey, pushKeysOf } from '../domain/messages/notification.ts'
import { createDrain } from './stopping.ts'
import { hasConsole } from '../http/web/console.ts'
import { createFirstTenant, firstTenantText, keepCredentials } from '../maintenance/first-tenant.ts'
import { createAddressRefusals } from '../http/tenants/allowed-addresses.ts'
import { createConfigurationClients } from '../http/policies/configuration-clients.ts'
import { createConfigurationCache } from '../http/policies/configuration-cache.ts'
import { createCredentialCache } from '../http/tenants/credential-cache.ts'
import { createWaitingKeys } from '../http/tenants/waiting-keys.ts'
import { createBodyValidator, telemetryScale } from '../http/record/body-validator.ts'
import { createLostRequestCounts } from '../http/record/lost-requests.ts'
import { createMetrics, type ProcessFacts } from '../http/web/metrics.ts'
import { createRateLimit } from '../http/tenants/rate-limit.ts'
import { createSignInLibrary } from '../http/people/sign-in-library.ts'
import { BodyMemory } from '../http/web/read-body.ts'
import { ReplyMemory } from '../http/web/reply-memory.ts'
import { checkAlerts } from '../jobs/messages/check-alerts.ts'
import {
  expireOverdueApprovals,
  flushConfigurationClients,
  flushCredentialUses,
  flushLostRequests,
  deleteExpired,
  followControlRevision,
} from '../jobs/engine/timers.ts'
import { deliverWebhooks, runPages, tellGaps } from '../jobs/messages/deliver-webhooks.ts'
import { closeStalled, endTraces } from '../jobs/runs/end-runs.ts'
import { deleteEnvironments, erase } from '../jobs/data/erase.ts'
import { deriveDecisions } from '../jobs/policies/derive-decisions.ts'
import { findFailures, reopenIssues, reviewIssueRecords } from '../jobs/issues/find-failures.ts'
import { indexSearch } from '../jobs/runs/index-search.ts'
import { packPayloads } from '../jobs/data/pack-payloads.ts'
import { queueRetention, retain } from '../jobs/data/retain.ts'
import { simulate } from '../jobs/policies/simulate.ts'
import { notifyPeople, contactOf, createPushSender } from '../jobs/messages/notify-people.ts'
import { createMailSender } from '../jobs/messages/mail-sender.ts'
import { createWebhookSender } from '../jobs/messages/webhook-sender.ts'
import { createWorkRunner } from '../jobs/engine/work.ts'
import { createPriceTable } from '../prices/price-table.ts'
import { programVersion } from '../program/program.ts'
import { storagePlace, throttledWarning } from './open-storage.ts'
import type { Storage } from '../storage/storage.ts'
import { watchMachine } from './watch-machine.ts'
import type { WorkerLink } from './workers.ts'

export interface RunningServer {
  url: string
  /** Reports not ready from now on, but still serves requests. */
  leave(): void
  close(): Promise<void>
}

export interface StartOptions {
  print?: (text: string) => void
  log?: FastifyBaseLogger | undefined
  now?: () => number
  onTrouble?: (error: Error) => void
  link?: WorkerLink | null
  processFacts?: ProcessFacts | undefined
  memory?: RequestMemory
}

/** Work is planned at most this far ahead, except for work whose time people or receivers chose. */
const FARTHEST_MS = 3_600_000 + 60_000
const SOON_MS = 60_000

export async function serveStore(config: Config, storage: Storage, options: StartOptions): Promise<RunningServer> {
  const {
    log,
    print = () => undefined,
    now = Date.now,
    link = null,
    processFacts,
    memory: bytes = requestMemory(),
  } = options
  const version = programVersion()
  const keys = createCredentialCache({ parse: parseApiKey, load: (id) => storage.findApiKey(id) })
  const sessions = createCredentialCache({ parse: sessionCredential, load: (hash) => storage.findSession(hash) })
  let listensOn = ''
  const operatorTokens = createCredentialCache({
    parse: parseOperatorToken,
    load: (id) => storage.findOperatorToken(id),
  })
  const onError = (err: unknown) => warnAbout('wake waiting clients')(err)
  const waitingKeys = createWaitingKeys({ storage, now: () => storeNow(), onError })
  const configurations = createConfigurationCache({ storage, waitingKeys, onError })
  const memory = new BodyMemory(bodyMemory(bytes, config.otlpMaxBytes), config.otlpMaxBytes)
  const replies = new ReplyMemory(bytes.replies)
  const bodyValidator = createBodyValidator({ telemetryScale: telemetryScale(config.otlpMaxBytes) })
  const prices = createPriceTable()
  const metrics = createMetrics({ version, storage, memory, replies, workers: link, process: processFacts })
  link?.measure(metrics.registry)
  const warn = throttledWarning(log)
  const warnAbout = (job: string) => (err: unknown) => warn(`background job "${job}" failed; it runs again`, err)
  const sender = createWebhookSender(config.webhookNetworks)
  const storeNow = () => now() + storage.clockOffsetMs()
  const configurationClients = createConfigurationClients({ now: storeNow })
  const lostRequests = createLostRequestCounts({ keys, metrics, now: storeNow })
  const publicUrl = () => config.publicUrl ?? forPeople(listensOn)
  const pages = runPages(storage, publicUrl)
  const pushKeys = pushKeysOf(await storage.secret('push', newPushKey()))
  const contact = () => contactOf(publicUrl(), config.mailFrom)
  const push = createPushSender({ keys: pushKeys, contact, send: sender.send })
  const work = createWorkRunner({
    storage,
    handlers: [
      reviewIssueRecords({ storage, now: storeNow, random: randomBytes }),
      findFailures({ storage, pages, now: storeNow, random: randomBytes }),
      deriveDecisions({ storage, now: storeNow, random: randomBytes, onDerived: metrics.recordDerived }),
      reopenIssues({ storage, now: storeNow, random: randomBytes }),
      simulate({ storage, now: storeNow }),
      retain({
        storage,
        now: storeNow,
        onRemoved(environmentId, rows, bytes) {
          metrics.recordRetention(rows, bytes)
          log?.info({ environmentId, ...rows, bytes }, 'retention has removed rows')
        },
      }),
      indexSearch({ storage, now: storeNow }),
      erase({ storage, now: storeNow }),
      deleteEnvironments({ storage, now: storeNow }),
      closeStalled({ storage, now: storeNow }),
      endTraces({ storage, now: storeNow }),
      tellGaps({ storage, pages, now: storeNow }),
      checkAlerts({ storage, prices, now: storeNow }),
      deliverWebhooks({ storage, sender, mail: createMailSender(config), pages, now: storeNow }),
      notifyPeople({ storage, push, now: storeNow }),
    ],
    owner: randomUUID(),
    now: storeNow,
    onError: (error, kind) => warnAbout(kind)(error),
  })
  const { identityProvider } = signInOptions(config)
  await storage.claimIdentities(identityProvider?.issuer ?? null)
  const workspaces = await storage.missingWorkspaces([...(config.groupRoles?.values() ?? [])].flat())
  if (workspaces.length > 0) log?.warn({ workspaces }, 'TACHO_GROUP_ROLES names workspaces that do not exist (yet)')
  let draining = false
  const app = createApp(
    {
      config,
      version,
      storage,
      keys,
      operatorTokens,
      sessions,
      reportAddress: createAddressRefusals(storage, storeNow),
      signIn: createSignInLibrary({ ...signInOptions(config), storage, now: storeNow }),
      publicUrl,
      configurations,
      waitingKeys,
      configurationClients,
      lostRequests,
      cursors: cursors(await storage.secret('cursors', randomBytes(32).toString('hex'))),
      rateLimit: createRateLimit({ requestsPerSecond: config.rateLimit, nodes: () => storage.nodes() }),
      bodyValidator,
      memory,
      replies,
      work,
      checkWebhookUrl: sender.check,
      sendToWebhook: sender.send,
      pushPublicKey: pushKeys.publicKey,
      metrics,
      prices,
      // The store's time, because nodes whose clocks differ must agree on what is too new, and on what has expired.
      now: storeNow,
      draining: () => draining,
    },
    log,
  )
  const drain = createDrain(app)
  await app.ready()
  const first = await createFirstTenant(storage, config, storeNow())
  const console = !config.console ? 'off' : hasConsole() ? 'served' : 'not built'
  const url = await listen(app.server, config).catch(async (error: unknown) => {
    // Show the credentials now: at the next start, the store is no longer new.
    if (first)
      print(
        keepCredentials(
          config,
          firstTenantText(first, null, config.publicUrl ?? forPeople(`http://${config.host}:${config.port}`), console),
        ),
      )
    await app.close()
    throw error
  })
  listensOn = url
  // On PostgreSQL, the database's clock decides.
  const isEmbedded = storage.engine === 'sqlite'
  // The clock may have been wrong before this start.
  if (isEmbedded) await storage.replanWork(storeNow(), FARTHEST_MS)
  work.start()
  const jobs = [
    work,
    watchMachine({ log, onJump: async () => isEmbedded && storage.replanWork(storeNow(), SOON_MS) }),
    expireOverdueApprovals({
      storage,
      applyHeld: (environmentId) => applyHeld(storage, environmentId, storeNow()),
      now: storeNow,
      onError: warnAbout('expire approvals'),
    }),
    followControlRevision({
      storage,
      listeners: [keys, operatorTokens, sessions, configurations, waitingKeys],
      onError: warnAbout('follow control revision'),
    }),
    queueRetention({
      storage,
      now: storeNow,
      wake: () => work.wake('retain'),
      onError: warnAbout('queue retention'),
    }),
    deleteExpired({ storage, now: storeNow, onError: warnAbout('delete expired rows') }),
    ...(packs(config, storage) ? [packPayloads({ storage, now: storeNow, onError: warnAbout('pack payloads') })] : []),
    flushCredentialUses({
      storage,
      sources: [
        { kind: 'api_key', credentials: keys },
        { kind: 'operator_token', credentials: operatorTokens },
        { kind: 'session', credentials: sessions },
      ],
      onError: warnAbout('flush credential uses'),
    }),
    flushLostRequests({ storage, lostRequests, onError: warnAbout('flush lost requests') }),
    flushConfigurationClients({
      storage,
      clients: configurationClients,
      now: storeNow,
      onError: warnAbout('flush configuration clients'),
    }),
  ]
  log?.info({ version, url, pid: process.pid }, 'ready')
  const listening = `Tacho ${version} listens on ${url}; its data is in ${storagePlace(config)}\n`
  // Printed after the log, which would push it off the screen, and in one piece, so that a program that reads the
  // address finds the credentials too.
  print(
    first
      ? `${listening}\n${keepCredentials(config, firstTenantText(first, url, config.publicUrl ?? forPeople(url), console))}`
      : listening,
  )

  async function stop(): Promise<void> {
    draining = true
    await drain.run(config.drainTimeout)
    await Promise.all(jobs.map((job) => job.stop()))
    await Promise.all([bodyValidator.close(), prices.close(), sender.close()])
    await storage.close()
  }
  let stopped: Promise<void> | null = null
  const leave = () => {
    draining = true
  }
  return { url, leave, close: () => (stopped ??= stop()) }
}

/** Off on PostgreSQL by default, where packing saves a quarter of the space but writes each event once more. */
function packs({ packPayloads: choice }: Config, { engine }: Storage): boolean {
  return choice === 'auto' ? engine === 'sqlite' : choice === 'on'
}

function signInOptions(config: Config) {
  const { publicUrl, oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret } = config
  const isSetUp = issuer !== null && clientId !== null && clientSecret !== null
  const { oidcDomain: domain, oidcDomainRole: domainRole, oidcGroupsClaim: groupsClaim, groupRoles } = config
  const scopes = config.oidcScopes?.split(' ') ?? []
  const provider = { domain, domainRole, groupsClaim, groupRoles, scopes }
  return { publicUrl, identityProvider: isSetUp ? { issuer, clientId, clientSecret, ...provider } : null }
}

/** Not the framework's function, which listens twice on `localhost`. */
async function listen(server: Server, { host, port }: Config): Promise<string> {
  server.listen({ host, port })
  await once(server, 'listening')
  const { address, port: actual } = server.address() as AddressInfo
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address] ?? address
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${actual}`
}

/** Replace 127.0.0.1 by `localhost`, as in the documents: a browser has separate cookies for each. */
const forPeople = (url: string): string => url.replace('//127.0.0.1:', '//localhost:')
