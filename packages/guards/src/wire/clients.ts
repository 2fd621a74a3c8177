/**
 * The variables with the model addresses of clients, and the upstream of each. docs/record.md has this table and the
 * clients that were tried; a test compares the two.
 */

interface ClientVariable {
  readonly name: string
  /** The upstream's name in the proxy's paths. */
  readonly route: string
  /** The client's address if the variable is not set. Null: set the variable only if the user has set it. */
  readonly byDefault: string | null
}

const OPENAI = 'https://api.openai.com/v1'
const ANTHROPIC = 'https://api.anthropic.com'
const GEMINI = 'https://generativelanguage.googleapis.com'
const OLLAMA = 'http://127.0.0.1:11434'

export const CLIENT_VARIABLES: readonly ClientVariable[] = [
  { name: 'OPENAI_BASE_URL', route: 'openai', byDefault: OPENAI },
  { name: 'OPENAI_API_BASE', route: 'openai', byDefault: OPENAI },
  // This address has no version in its path, so it needs a separate route.
  { name: 'OPENAI_HOST', route: 'openai-host', byDefault: null },
  { name: 'ANTHROPIC_BASE_URL', route: 'anthropic', byDefault: ANTHROPIC },
  { name: 'ANTHROPIC_API_BASE', route: 'anthropic', byDefault: ANTHROPIC },
  { name: 'ANTHROPIC_HOST', route: 'anthropic', byDefault: ANTHROPIC },
  { name: 'GOOGLE_GEMINI_BASE_URL', route: 'gemini', byDefault: GEMINI },
  { name: 'GEMINI_API_BASE', route: 'gemini', byDefault: GEMINI },
  { name: 'GOOGLE_HOST', route: 'gemini', byDefault: GEMINI },
  { name: 'OLLAMA_HOST', route: 'ollama', byDefault: OLLAMA },
  { name: 'OLLAMA_API_BASE', route: 'ollama', byDefault: OLLAMA },
  { name: 'OLLAMA_BASE_URL', route: 'ollama', byDefault: null },
  { name: 'AZURE_OPENAI_ENDPOINT', route: 'azure', byDefault: null },
  { name: 'AZURE_API_BASE', route: 'azure', byDefault: null },
  { name: 'LITELLM_PROXY_API_BASE', route: 'litellm', byDefault: null },
  { name: 'OPENROUTER_BASE_URL', route: 'openrouter', byDefault: 'https://openrouter.ai/api/v1' },
  { name: 'GROQ_BASE_URL', route: 'groq', byDefault: 'https://api.groq.com' },
  { name: 'COPILOT_PROVIDER_BASE_URL', route: 'copilot', byDefault: null },
]

export interface Redirected {
  /** Variables for the environment of the command. */
  readonly variables: Readonly<Record<string, string>>
  /** Origin of each upstream, by its route. */
  readonly routes: ReadonlyMap<string, URL>
  /** Variables whose value is not an address. They are left unchanged. */
  readonly unreadable: readonly string[]
}

type Variables = Readonly<Record<string, string | undefined>>

/**
 * @param base the proxy's address with its secret. @param hostVariables the user's environment, which names the
 * upstreams.
 */
export function redirected(base: string, hostVariables: Variables): Redirected {
  const variables: Record<string, string> = {}
  const routes = new Map<string, URL>()
  const unreadable: string[] = []
  for (const { name, route, byDefault } of CLIENT_VARIABLES) {
    const ownAddress = hostVariables[name] || undefined
    const address = ownAddress ?? sameRoute(hostVariables, route) ?? byDefault
    if (address === null) continue
    // Ollama accepts a host without a scheme.
    const url = URL.parse(route === 'ollama' && !address.includes('://') ? `http://${address}` : address)
    if (url === null || !/^https?:$/.test(url.protocol)) {
      if (ownAddress !== undefined) unreadable.push(name)
      continue
    }
    // Two variables with one route may have different origins.
    const path = routes.has(route) && routes.get(route)?.origin !== url.origin ? `${route}-${routes.size}` : route
    routes.set(path, new URL(url.origin.replace('//0.0.0.0', '//127.0.0.1')))
    variables[name] = `${base}/${path}${url.pathname.replace(/\/+$/, '')}`
  }
  return { variables: { ...variables, ...withoutProxy(hostVariables) }, routes, unreadable }
}

function sameRoute(hostVariables: Variables, route: string): string | undefined {
  const other = CLIENT_VARIABLES.find((one) => one.route === route && hostVariables[one.name])
  return other && hostVariables[other.name]
}

/** Variables that keep a client from using the user's HTTP proxy for this address. */
function withoutProxy(hostVariables: Variables): Record<string, string> {
  const isSet = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'].some((name) => hostVariables[name])
  if (!isSet) return {}
  const list = [hostVariables['NO_PROXY'] ?? hostVariables['no_proxy'], '127.0.0.1,localhost'].filter(Boolean).join(',')
  return { NO_PROXY: list, no_proxy: list }
}

/** The AI SDK's Anthropic provider omits the version, which Anthropic's own client adds to the path. */
export function completePath(route: string, path: string): string {
  return route === 'anthropic' && path.startsWith('/messages') ? `/v1${path}` : path
}
