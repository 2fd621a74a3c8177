/**
 * better-auth needs 50 MB, so it loads at the first sign-in. We call its functions instead of exposing its endpoints:
 * our endpoints check origin and rate, and report errors in our words.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import type { Role } from '@tacho/contract/web/route.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { GroupRoles } from '../../domain/people/identity.ts'
import { hashPassword, verifyPassword } from '../../domain/people/credential.ts'
import type { Storage } from '../../storage/storage.ts'
import { COOKIE_PREFIX, newRecordId, signInRecords } from './sign-in-records.ts'
import { createAdmission, PROVIDER_ID, verifiedEmail } from './identity-provider.ts'
import type { AuditedRequest } from './audit.ts'
import { waitForTurn } from '../web/turns.ts'

const SIGN_IN_PATH = '/operator/v1/sign-in'
/** Only the server sets this header: the same header from a client is dropped. */
export const ADDRESS_HEADER = 'x-tacho-address'

const SECOND_FACTOR_SECONDS = 10 * 60

export interface IdentityProvider {
  issuer: string
  clientId: string
  clientSecret: string
  domain: string | null
  domainRole: Role
  groupsClaim: string
  groupRoles: GroupRoles | null
  /** Scopes in addition to those that every sign-in needs. */
  scopes: readonly string[]
}

export interface LibraryOptions {
  storage: Storage
  publicUrl: string | null
  identityProvider: IdentityProvider | null
  now: () => number
}

export type SignInLibrary = ReturnType<typeof createSignInLibrary>

export function createSignInLibrary(options: LibraryOptions) {
  const { identityProvider, publicUrl } = options
  let passwords: ReturnType<typeof loadPasswordLibrary> | null = null
  let oidc: ReturnType<typeof loadOidcLibrary> | null = null
  const requests = new AsyncLocalStorage<AuditedRequest>()
  return {
    hasOidc: identityProvider !== null && publicUrl !== null,
    passwords() {
      passwords ??= loadPasswordLibrary(options)
      passwords.catch(() => (passwords = null))
      return passwords
    },
    /** Runs `act` so that audit entries of the library's callbacks name this request. */
    within: <Result>(request: AuditedRequest, act: () => Promise<Result>) => requests.run(request, act),
    /** Null if the provider's discovery document cannot be read now, or names another issuer. */
    async oidc() {
      if (identityProvider === null || publicUrl === null) throw new Error('No identity provider is configured')
      oidc ??= loadOidcLibrary(options, identityProvider, publicUrl, requests)
      oidc.catch(() => (oidc = null))
      const library = await oidc
      const { socialProviders } = await library.$context
      const provider = Array.isArray(socialProviders) ? socialProviders.find(({ id }) => id === PROVIDER_ID) : undefined
      // The issuer must match (OpenID Connect Discovery 4.3). The setting has no slash at its end.
      if (provider?.issuer?.replace(/\/+$/, '') === identityProvider.issuer) return library
      oidc = null
      return null
    },
  }
}

async function loadPasswordLibrary(options: LibraryOptions) {
  const common = await commonOptions(options)
  const { twoFactor } = await inTurn(() => import('better-auth/plugins/two-factor'))
  const { betterAuth } = await inTurn(() => import('better-auth/minimal'))
  return betterAuth({
    ...common,
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      // The library counts UTF-16 units, at most two for each of our characters. Its own limit is below ours.
      maxPasswordLength: 2 * LIMITS.passwordCharsMax,
      password: { hash: hashPassword, verify: ({ hash, password }) => verifyPassword(password, hash) },
    },
    plugins: [
      twoFactor({
        issuer: 'Tacho',
        twoFactorCookieMaxAge: SECOND_FACTOR_SECONDS,
        backupCodeOptions: { storeBackupCodes: 'encrypted' },
      }),
    ],
  })
}

async function loadOidcLibrary(
  options: LibraryOptions,
  provider: IdentityProvider,
  publicUrl: string,
  requests: AsyncLocalStorage<AuditedRequest>,
) {
  const { issuer, clientId, clientSecret, scopes } = provider
  const common = await commonOptions(options)
  const { genericOAuth } = await inTurn(() => import('better-auth/plugins/generic-oauth'))
  const { betterAuth } = await inTurn(() => import('better-auth/minimal'))
  const { storage, now } = options
  const admit = createAdmission({ ...provider, storage, now })
  return betterAuth({
    ...common,
    // An address with a path must be the complete base.
    baseURL: publicUrl + SIGN_IN_PATH,
    // The admission links accounts, so the library must not.
    account: { accountLinking: { enabled: false }, updateAccountOnSignIn: false },
    plugins: [
      genericOAuth({
        config: [
          {
            providerId: PROVIDER_ID,
            discoveryUrl: `${issuer}/.well-known/openid-configuration`,
            clientId,
            clientSecret,
            scopes: [...new Set(['openid', 'email', 'profile', ...scopes])],
            pkce: true,
            requireIdTokenVerification: true,
            // The admission creates accounts, so the library must not.
            disableSignUp: true,
            async accountSubject({ tokens, profile }) {
              const request = requests.getStore()
              if (request === undefined) throw new Error('A sign-in ended outside of its request')
              return admit(profile, tokens.idToken, request)
            },
            mapProfileToUser(profile) {
              const email = verifiedEmail(profile)
              return email === null ? { emailVerified: false } : { email, emailVerified: true }
            },
          },
        ],
      }),
    ],
  })
}

/** Loads a part of the library in its own turn: all parts at once would block the event loop for up to 0.1 s. */
async function inTurn<Part>(load: () => Promise<Part>): Promise<Part> {
  await waitForTurn()
  return load()
}

async function commonOptions({ storage }: LibraryOptions) {
  const secret = await storage.secret('sign-in', randomBytes(32).toString('hex'))
  const { createAdapterFactory } = await inTurn(() => import('better-auth/adapters'))
  return {
    appName: 'Tacho',
    secret,
    baseURL: 'http://localhost',
    basePath: SIGN_IN_PATH,
    database: createAdapterFactory({
      config: {
        adapterId: 'tacho',
        adapterName: 'Tacho',
        supportsDates: true,
        supportsBooleans: true,
        supportsNumericIds: false,
        transaction: false,
        customIdGenerator: newRecordId,
      },
      adapter: () => signInRecords(storage),
    }),
    session: { expiresIn: LIMITS.sessionMs / 1000, disableSessionRefresh: true, cookieCache: { enabled: false } },
    verification: { storeIdentifier: 'hashed' as const },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    // Off, because some of the library's log lines contain names of people.
    logger: { disabled: true },
    advanced: {
      cookiePrefix: COOKIE_PREFIX,
      useSecureCookies: false,
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER] },
      database: { generateId: newRecordId },
    },
  }
}
