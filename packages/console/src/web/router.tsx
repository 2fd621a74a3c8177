/** All pages and their addresses. An address contains the state of its page; the page's code is loaded when it opens. */
import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router'
import { BASE } from './api.ts'
import { homeAddress, placeAt, signedIn } from './home.ts'
import { readApprovalListAddress } from '../approvals/queries.ts'
import {
  readCompareAddress,
  readRunAddress,
  readRunListAddress,
  readJudgeAddress,
  readSearchAddress,
  readSumsAddress,
  readUsageAddress,
} from '../runs/address.ts'
import { readPolicyAddress, readNewPolicySearch, readPromptAddress } from '../policies/address.ts'
import { readIssueSearch, readIssueListAddress } from '../issues/address.ts'
import { readAuditAddress, readDeliveriesAddress, readScopeAddress } from '../people/address.ts'
import { Shell } from './shell/shell.tsx'
import { readRange, textOf } from './address.ts'
import { NoPage, NotFound, PagePending, PageTrouble } from './ui/states.tsx'

interface Context {
  cache: QueryClient
}

const rootRoute = createRootRouteWithContext<Context>()({ notFoundComponent: NoPage })

const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  validateSearch: (search: Record<string, unknown>): { 'sign-in'?: string } => textOf(search, ['sign-in']),
  async beforeLoad({ context, search }) {
    // The server redirects here if the identity provider, or the server itself, refused the sign-in.
    if (search['sign-in'] !== undefined) throw redirect({ to: '/sign-in', search: { ended: search['sign-in'] } })
    throw redirect(await signedIn(() => homeAddress(context.cache), '/'))
  },
})

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  validateSearch: (search: Record<string, unknown>): { back?: string; ended?: string } =>
    textOf(search, ['back', 'ended']),
  component: lazyRouteComponent(() => import('../people/sign-in-page.tsx'), 'SignInPage'),
})

const invitationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/invitation',
  component: lazyRouteComponent(() => import('../people/invitation-page.tsx'), 'InvitationPage'),
})

const welcomeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/welcome',
  component: lazyRouteComponent(() => import('../people/welcome-page.tsx'), 'WelcomePage'),
})

const placeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/w/$workspace/$environment',
  async beforeLoad({ context, params, location }) {
    const place = await signedIn(() => placeAt(context.cache, params.workspace, params.environment), location.href)
    return { place }
  },
  component: Shell,
})

const overviewRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/',
  validateSearch: readRange,
  component: lazyRouteComponent(() => import('../runs/overview/overview-page.tsx'), 'OverviewPage'),
})

const runsRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/runs',
  validateSearch: readRunListAddress,
  component: lazyRouteComponent(() => import('../runs/list/runs-page.tsx'), 'RunsPage'),
})

const judgeRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/judge',
  validateSearch: readJudgeAddress,
  component: lazyRouteComponent(() => import('../runs/scores/judge-page.tsx'), 'JudgePage'),
})

const runRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/runs/$runId',
  validateSearch: readRunAddress,
  component: lazyRouteComponent(() => import('../runs/page/run-page.tsx'), 'RunPage'),
})

const agentsRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/agents',
  validateSearch: readSumsAddress,
  component: lazyRouteComponent(() => import('../runs/agents/agents-page.tsx'), 'AgentsPage'),
})

const sessionsRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/sessions',
  validateSearch: readSumsAddress,
  component: lazyRouteComponent(() => import('../runs/agents/sessions-page.tsx'), 'SessionsPage'),
})

const agentRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/agents/$agent',
  validateSearch: readRange,
  component: lazyRouteComponent(() => import('../runs/agents/agent-page.tsx'), 'AgentPage'),
})

const sessionRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/sessions/$sessionId',
  component: lazyRouteComponent(() => import('../runs/agents/session-page.tsx'), 'SessionPage'),
})

const searchRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/search',
  validateSearch: readSearchAddress,
  component: lazyRouteComponent(() => import('../runs/search/search-page.tsx'), 'SearchPage'),
})

const approvalsRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/approvals',
  validateSearch: readApprovalListAddress,
  component: lazyRouteComponent(() => import('../approvals/approvals-page.tsx'), 'ApprovalsPage'),
})

const approvalRoute = createRoute({
  getParentRoute: () => approvalsRoute,
  path: '/$approvalId',
  component: lazyRouteComponent(() => import('../approvals/approval-pane.tsx'), 'ApprovalPane'),
})

const issuesRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/issues',
  validateSearch: readIssueListAddress,
  component: lazyRouteComponent(() => import('../issues/issues-page.tsx'), 'IssuesPage'),
})

const issueRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/issues/$issueId',
  validateSearch: readIssueSearch,
  component: lazyRouteComponent(() => import('../issues/issue-page.tsx'), 'IssuePage'),
})

const policiesRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/policies',
  validateSearch: (search: Record<string, unknown>): { set?: string } => textOf(search, ['set']),
  component: lazyRouteComponent(() => import('../policies/policies-page.tsx'), 'PoliciesPage'),
})

const policyRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/policies/$policyId',
  validateSearch: readPolicyAddress,
  component: lazyRouteComponent(() => import('../policies/policy-page.tsx'), 'PolicyPage'),
})

const newPolicyRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/new-policy',
  validateSearch: readNewPolicySearch,
  component: lazyRouteComponent(() => import('../policies/new-policy-page.tsx'), 'NewPolicyPage'),
})

const promptsRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/prompts',
  component: lazyRouteComponent(() => import('../policies/prompts/prompts-page.tsx'), 'PromptsPage'),
})

const promptRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/prompts/$promptId',
  validateSearch: readPromptAddress,
  component: lazyRouteComponent(() => import('../policies/prompts/prompt-page.tsx'), 'PromptPage'),
})

const newPromptRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/new-prompt',
  component: lazyRouteComponent(() => import('../policies/prompts/new-prompt-page.tsx'), 'NewPromptPage'),
})

const slackLinkRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/slack-link',
  component: lazyRouteComponent(() => import('../messages/slack-link-page.tsx'), 'SlackLinkPage'),
})

const settingsRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/settings',
  component: lazyRouteComponent(() => import('./settings-page.tsx'), 'SettingsPage'),
})

const settingsHomeRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/w/$workspace/$environment/settings/api-keys', params })
  },
})

const apiKeysRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/api-keys',
  component: lazyRouteComponent(() => import('../tenants/api-keys-page.tsx'), 'ApiKeysPage'),
})

const usageRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/usage',
  validateSearch: readUsageAddress,
  component: lazyRouteComponent(() => import('../runs/usage/usage-page.tsx'), 'UsagePage'),
})

const rolloutRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/rollout',
  component: lazyRouteComponent(() => import('../policies/deployments/rollout-page.tsx'), 'RolloutPage'),
})

const compareRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/compare',
  validateSearch: readCompareAddress,
  beforeLoad: async ({ context: { cache, place }, params: { workspace }, search: { bIn } }) => ({
    otherPlace: bIn === undefined ? place : await placeAt(cache, workspace, bIn),
  }),
  component: lazyRouteComponent(() => import('../runs/compare/compare-page.tsx'), 'ComparePage'),
})

const webhooksRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/webhooks',
  component: lazyRouteComponent(() => import('../messages/webhooks-page.tsx'), 'WebhooksPage'),
})

const webhookRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/webhooks/$webhookId',
  validateSearch: readDeliveriesAddress,
  component: lazyRouteComponent(() => import('../messages/webhook-page.tsx'), 'WebhookPage'),
})

const alertsRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/alerts',
  component: lazyRouteComponent(() => import('../messages/alerts-page.tsx'), 'AlertsPage'),
})

const pricesRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/prices',
  component: lazyRouteComponent(() => import('../runs/usage/prices-page.tsx'), 'PricesPage'),
})

const dataRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/data',
  component: lazyRouteComponent(() => import('../data/data-page.tsx'), 'DataPage'),
})

const environmentsRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/environments',
  component: lazyRouteComponent(() => import('../tenants/environments-page.tsx'), 'EnvironmentsPage'),
})

const peopleRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/people',
  validateSearch: readScopeAddress,
  component: lazyRouteComponent(() => import('../people/people-page.tsx'), 'PeoplePage'),
})

const tokensRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/tokens',
  validateSearch: readScopeAddress,
  component: lazyRouteComponent(() => import('../people/tokens-page.tsx'), 'TokensPage'),
})

const auditRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/audit',
  validateSearch: readAuditAddress,
  component: lazyRouteComponent(() => import('../people/audit-page.tsx'), 'AuditPage'),
})

const doctorRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/doctor',
  component: lazyRouteComponent(() => import('./doctor-page.tsx'), 'DoctorPage'),
})

const accountRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/account',
  component: lazyRouteComponent(() => import('../people/account-page.tsx'), 'AccountPage'),
})

const getStartedRoute = createRoute({
  getParentRoute: () => placeRoute,
  path: '/get-started',
  component: lazyRouteComponent(() => import('../record/get-started-page.tsx'), 'GetStartedPage'),
})

const routeTree = rootRoute.addChildren([
  homeRoute,
  signInRoute,
  invitationRoute,
  welcomeRoute,
  placeRoute.addChildren([
    overviewRoute,
    runsRoute,
    runRoute,
    judgeRoute,
    agentsRoute,
    agentRoute,
    sessionsRoute,
    sessionRoute,
    searchRoute,
    approvalsRoute.addChildren([approvalRoute]),
    issuesRoute,
    issueRoute,
    policiesRoute,
    policyRoute,
    newPolicyRoute,
    promptsRoute,
    promptRoute,
    newPromptRoute,
    usageRoute,
    rolloutRoute,
    compareRoute,
    settingsRoute.addChildren([
      settingsHomeRoute,
      apiKeysRoute,
      webhooksRoute,
      webhookRoute,
      alertsRoute,
      pricesRoute,
      dataRoute,
      environmentsRoute,
      peopleRoute,
      tokensRoute,
      auditRoute,
      doctorRoute,
      accountRoute,
    ]),
    getStartedRoute,
    slackLinkRoute,
  ]),
])

export function createConsoleRouter(cache: QueryClient) {
  return createRouter({
    routeTree,
    basepath: BASE === '' ? '/' : BASE,
    context: { cache },
    // Removes parameters from the address that no page reads, or that are invalid.
    search: { strict: true },
    defaultPreload: 'intent',
    // The query cache, not the router, decides whether data are fresh.
    defaultPreloadStaleTime: 0,
    defaultPendingMs: 100,
    defaultPendingComponent: PagePending,
    defaultErrorComponent: PageTrouble,
    defaultNotFoundComponent: NotFound,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>
  }
}
