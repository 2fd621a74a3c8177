import { randomUUID } from 'node:crypto'
import { OPERATOR_PREFIX } from '@tacho/contract/web/operator-routes.ts'
import { PUBLIC_PREFIX } from '@tacho/contract/web/routes.ts'
import { fastify, LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { apiKeyHook, keyAgainHook, createUnknownKeys } from './http/tenants/api-key.ts'
import { createApprovalReader } from './http/approvals/approval-reader.ts'
import { approvalsRoutes } from './http/approvals/approvals.ts'
import { consoleRoutes, frontRoute, hasConsole, isNavigation, sendConsolePage } from './http/web/console.ts'
import type { Deps } from './http/web/deps.ts'
import { documentsRoutes } from './http/web/documents.ts'
import { guideRoutes } from './http/web/guide.ts'
import { eventsRoutes } from './http/record/events.ts'
import { everyReplyHooks, requestLogHooks } from './http/web/every-reply.ts'
import { healthRoutes } from './http/web/health.ts'
import { issueRecordsRoutes } from './http/issues/issue-records.ts'
import { otlpRoutes } from './http/record/otlp.ts'
import { createGrpcAnswers, NO_GRPC } from './http/record/exporters.ts'
import { lostRequestHooks } from './http/record/lost-requests.ts'
import { metricsHooks, metricsRoutes } from './http/web/metrics.ts'
import { accessHook } from './http/people/access.ts'
import { callerAgainHook, callerHook } from './http/people/caller.ts'
import { createOperatorLimits } from './http/people/attempts.ts'
import { mcpRoutes } from './http/web/mcp.ts'
import { operatorRoutes } from './http/web/operator-routes.ts'
import { clientErrors, errorHandlers, frameworkErrors } from './http/web/reply-error.ts'
import { boundIdleConnections, boundPipelines, cutStalledReaders } from './http/web/connections.ts'
import { runsRoutes } from './http/runs/runs.ts'
import { runtimeConfigRoutes, answerUnchangedFirst } from './http/policies/runtime-config.ts'
import { withoutBodyParsers } from './http/web/serve-route.ts'
import { scimRoutes } from './http/people/scim.ts'
import { slackRoutes } from './http/messages/slack.ts'

/** A path id can have 255 code points, each up to 12 characters when percent-encoded. */
const PATH_PARAMETER_CHARS = 4_096
const HEADERS_TIMEOUT_MS = 10_000
const TIMEOUT_CHECK_MS = 1_000
/** Longer than the idle timeouts of load balancers, so that these close first. */
const KEEP_ALIVE_MS = 65_000

function withoutCompilers(): never {
  throw new Error('routes check requests and write replies themselves')
}

export function createApp(deps: Deps, log?: FastifyBaseLogger): FastifyInstance {
  const { config } = deps
  const path = new URL(config.publicUrl ?? 'http://localhost').pathname.replace(/\/$/, '')
  const answerGrpc = createGrpcAnswers((caller) => {
    deps.lostRequests
      .count(caller, NO_GRPC)
      .catch((err: unknown) => log?.warn({ err }, 'could not count a lost request'))
  })
  const app = fastify({
    ...(log ? { loggerInstance: log } : {}),
    // Off, because the framework's log lines contain the query.
    logController: new LogController({ disableRequestLogging: true }),
    // Replaced, because the framework's compilers are a hundred modules to load.
    schemaController: { compilersFactory: { buildValidator: withoutCompilers, buildSerializer: withoutCompilers } },
    // One logger for all requests: a logger for each would cost more than its lines.
    childLoggerFactory: (logger) => logger,
    genReqId: () => randomUUID(),
    // A proxy may leave the public address's path in place, so remove it.
    rewriteUrl: ({ url = '/' }) => (url.startsWith(`${path}/`) ? url.slice(path.length) : url),
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    routerOptions: { maxParamLength: PATH_PARAMETER_CHARS },
    requestTimeout: config.requestTimeout,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: {
      headersTimeout: Math.min(HEADERS_TIMEOUT_MS, config.requestTimeout),
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // Node would reject it without a body; every-reply.ts sends a problem.
      requireHostHeader: false,
    },
    // Still answer requests on open connections; the drain timeout bounds this.
    return503OnClosing: false,
    frameworkErrors,
    clientErrorHandler: clientErrors(answerGrpc),
  })
  // At level debug the framework's hooks must log each 304.
  if (log?.level !== 'debug') answerUnchangedFirst(app, deps)
  boundPipelines(app.server, () => app.log.info({ route: 'none' }, 'closed a connection with too many requests'))
  boundIdleConnections(app.server)
  cutStalledReaders(app.server, config.requestTimeout)
  everyReplyHooks(app, deps)
  // Node would reject an unknown expectation without a body, but HTTP allows a server to ignore it.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  const console = config.console && hasConsole()
  errorHandlers(app, (request, reply) => (console && isNavigation(request) ? sendConsolePage(request, reply) : null))
  withoutBodyParsers(app)
  app.decorateRequest('apiKey', null)

  const approvals = createApprovalReader(app, deps)

  metricsHooks(app, deps)
  requestLogHooks(app)
  lostRequestHooks(app, deps)
  healthRoutes(app, deps)
  if (config.metrics) metricsRoutes(app, deps)
  frontRoute(app, { version: deps.version, docs: config.docs, console })
  if (console) consoleRoutes(app)
  // Redirects to the path with a slash, which the page's relative addresses need.
  if (path !== '' && !app.hasRoute({ method: 'GET', url: path })) {
    app.get(path, (_request, reply) => reply.redirect(`${path}/`, 308))
  }
  if (config.docs) {
    documentsRoutes(app, { version: deps.version, now: deps.now })
    guideRoutes(app)
  }

  void app.register(
    async (api) => {
      const unknownKeys = createUnknownKeys()
      api.addHook('onRoute', (options) => {
        const { route } = options.config ?? {}
        if (!route) throw new Error(`${options.url} is not in the routes table`)
        const byKey = apiKeyHook(route, deps.keys, deps.rateLimit, unknownKeys, deps.reportAddress, deps.now)
        options.onRequest = [byKey, ...[options.onRequest ?? []].flat()]
        if (route.body) options.preHandler = keyAgainHook(deps.keys, deps.now)
      })
      eventsRoutes(api, deps)
      otlpRoutes(api, deps)
      runsRoutes(api, deps)
      issueRecordsRoutes(api, deps, approvals)
      approvalsRoutes(api, deps, approvals)
      runtimeConfigRoutes(api, deps)
    },
    { prefix: PUBLIC_PREFIX },
  )

  const limits = createOperatorLimits({
    requestsPerSecond: config.operatorRateLimit,
    nodes: () => deps.storage.nodes(),
  })
  slackRoutes(app, deps, approvals, limits)
  scimRoutes(app, deps, limits)

  void app.register(async (operators) => {
    for (const name of ['operatorToken', 'session', 'actor', 'operator']) operators.decorateRequest(name, null)
    operators.addHook('onRequest', callerHook(deps, limits))
    operators.addHook('onRequest', accessHook(deps.storage, limits, deps.now))
    operators.addHook('preHandler', callerAgainHook(deps))
    void operators.register(async (api) => operatorRoutes(api, deps, approvals), { prefix: OPERATOR_PREFIX })
    void operators.register(async (mcp) => mcpRoutes(mcp, deps))
  })
  return app
}
