import { readFileSync } from 'node:fs'
import os from 'node:os'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { API_KEY_FORM, OPERATOR_TOKEN_FORM, parseApiKey, parseOperatorToken } from '../domain/people/credential.ts'
import { nearestName } from '../domain/web/text.ts'
import { isEmail, lowerCase } from '../domain/people/identity.ts'
import { smtpServerOf } from '../domain/messages/mail.ts'
import {
  groupRoles,
  bytes,
  choice,
  duration,
  integer,
  networks,
  onOff,
  optional,
  optionalText,
  secretText,
  text,
  webAddress,
  type Setting,
} from './setting.ts'

/** `dataDir` is the flag --data-dir, which overrides the variable TACHO_DATA_DIR. A secret has no flag. */
export const SETTINGS = {
  host: text(
    { placeholder: 'address', byDefault: '127.0.0.1', help: 'Address to listen on; :: or 0.0.0.0 for all interfaces' },
    255,
  ),
  port: integer({ byDefault: '4680', from: 0, to: 65_535, help: 'Port to listen on; 0 for any free port' }, 'port'),
  dataDir: text({ placeholder: 'directory', byDefault: './data', help: 'Directory of the embedded store' }, 4_096),
  databaseUrl: optionalText(
    {
      placeholder: 'url',
      help: 'PostgreSQL database to use instead of the embedded store: postgres://user:password@host/database?sslmode=verify-full',
      fromFile: true,
    },
    4_096,
  ),
  databasePool: integer({ byDefault: '10', from: 2, to: 1_000, help: 'Database connections per process' }),
  databaseTimeout: duration({ byDefault: '20s', from: '1s', to: '10m', help: 'Timeout for a database statement' }),
  readyCommitWait: duration({
    byDefault: '30s',
    from: '1s',
    to: '1h',
    help: 'A node is not ready once its oldest write has waited this long for its commit',
  }),
  workers: integer({
    byDefault: '1',
    from: 1,
    to: 256,
    help: 'Server processes on this machine; more than one require a database',
  }),
  trustProxy: networks('Proxies whose X-Forwarded headers are trusted, separated by commas'),
  logLevel: choice({ byDefault: 'info', help: 'Lowest level to log; default of tacho serve on a terminal: warn' }, [
    'debug',
    'info',
    'warn',
    'error',
    'fatal',
    'silent',
  ]),
  rateLimit: integer({
    byDefault: String(LIMITS.requestsPerSecondDefault),
    from: 1,
    to: LIMITS.requestsPerSecondMax,
    help: 'Requests per second for an API key without its own limit',
  }),
  operatorRateLimit: integer({
    byDefault: String(LIMITS.operatorRequestsPerSecondDefault),
    from: 1,
    to: LIMITS.requestsPerSecondMax,
    help: 'Requests per second for an operator token or session; an address gets four times as many',
  }),
  otlpMaxBytes: bytes({
    byDefault: '20MiB',
    from: '1MiB',
    to: '64MiB',
    help: 'Largest body of an OpenTelemetry request, decompressed; exporters drop larger ones',
  }),
  minFreeDisk: bytes({
    byDefault: '256MiB',
    from: '0B',
    to: '1TiB',
    help: 'Reject writes while less disk space is free',
  }),
  packPayloads: choice(
    { byDefault: 'auto', help: 'Compress payloads of idle runs in the background; auto: in the embedded store only' },
    ['auto', 'on', 'off'],
  ),
  requestTimeout: duration({
    byDefault: '30s',
    from: '1s',
    to: '1h',
    help: 'Timeout for a request to arrive, and for a client that does not read its reply',
  }),
  drainDelay: duration({
    byDefault: '5s',
    from: '0s',
    to: '10m',
    help: 'Time in which a stopping server still serves and answers 503 at /readyz; load balancers remove it. None after Ctrl-C',
  }),
  // Below the ten seconds after which container engines kill a process by default.
  drainTimeout: duration({
    byDefault: '8s',
    from: '0s',
    to: '10m',
    help: 'Time for open requests to finish when the server stops',
  }),
  webhookNetworks: networks(
    'Private networks that webhooks can reach, separated by commas; public networks are always allowed',
  ),
  publicUrl: webAddress('Public address of the server, for links and for an identity provider'),
  smtpUrl: secretText(
    {
      placeholder: 'url',
      help: 'Mail server, such as smtps://user:password@smtp.example.com; enables webhooks by mail',
    },
    (settingText) => smtpServerOf(settingText) !== null,
    'smtp:// or smtps://, with user and password if needed, and without a path or query',
  ),
  mailFrom: optional(
    { placeholder: 'address', help: 'Sender of mail' },
    (settingText) => (isEmail(settingText) ? settingText : null),
    'an e-mail address',
  ),
  oidcIssuer: webAddress('Identity provider for sign-in; its endpoints are discovered automatically'),
  oidcClientId: optional({ placeholder: 'id', help: 'Client id at the identity provider' }, anyText, 'a text'),
  oidcClientSecret: secretText(
    { placeholder: 'secret', help: 'Client secret at the identity provider' },
    (settingText) => anyText(settingText) !== null,
    'a text of up to 1024 characters',
  ),
  oidcName: text(
    { placeholder: 'name', byDefault: 'Single sign-on', help: 'Display name of the identity provider' },
    LIMITS.nameChars,
  ),
  oidcDomain: optional(
    { placeholder: 'domain', help: 'People with a verified address in this domain need no invitation' },
    (settingText) => (isEmail(`x@${settingText}`) ? lowerCase(settingText) : null),
    'a domain such as example.com',
  ),
  oidcDomainRole: choice({ byDefault: 'viewer', help: 'Role of people who join by domain, in every workspace' }, [
    'viewer',
    'approver',
    'admin',
  ]),
  oidcGroupsClaim: text(
    { placeholder: 'name', byDefault: 'groups', help: "Claim of the id token with the person's groups" },
    255,
  ),
  oidcScopes: optional(
    { placeholder: 'scopes', help: 'More scopes to request, such as groups, separated by spaces' },
    // RFC 6749 3.3
    (settingText) =>
      /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(settingText) ? settingText : null,
    'scopes separated by single spaces',
  ),
  groupRoles: groupRoles('Roles that groups of the identity provider give, by group and workspace'),
  scimToken: secretText(
    {
      placeholder: 'token',
      help: 'Token of a directory that manages people and groups through SCIM; without it, SCIM is off',
    },
    (settingText) => /^[\x21-\x7e]{32,512}$/.test(settingText),
    'a text of 32 to 512 visible ASCII characters',
  ),
  console: onOff('Serve the operator console at /, if it is built'),
  metrics: onOff('Serve /metrics, without a key'),
  docs: onOff('Serve /docs and the interface documents, without a key'),
  initWorkspace: text(
    { placeholder: 'name', byDefault: 'default', help: 'Workspace of a new store', fromFile: true },
    LIMITS.nameChars,
  ),
  initEnvironment: text(
    { placeholder: 'name', byDefault: 'development', help: 'Environment of a new store', fromFile: true },
    LIMITS.nameChars,
  ),
  initApiKey: secretText(
    { placeholder: 'key', help: 'API key of a new store; if omitted, one is created and printed once' },
    (settingText) => parseApiKey(settingText) !== null,
    API_KEY_FORM,
  ),
  initOperatorToken: secretText(
    { placeholder: 'token', help: 'Operator token of a new store; if omitted, one is created and printed once' },
    (settingText) => parseOperatorToken(settingText) !== null,
    OPERATOR_TOKEN_FORM,
  ),
  initCredentialsFile: optional(
    {
      placeholder: 'file',
      help: 'File that gets the key, token and link of a new store, for its owner only, instead of printing them',
    },
    (settingText) => (settingText.length <= 4_096 ? settingText : null),
    'a file name of up to 4096 characters',
  ),
  initOperatorEmail: optional(
    { placeholder: 'address', help: 'E-mail address of the first owner of a new store; a one-time link is printed' },
    (settingText) => (isEmail(settingText) ? lowerCase(settingText) : null),
    'an e-mail address',
  ),
}

export type SettingName = keyof typeof SETTINGS
type ValueOf<OneSetting> = OneSetting extends Setting<infer Value> ? Value : never
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> }

export type Flags = Readonly<Record<string, string | undefined>>
export type Environment = Readonly<Record<string, string | undefined>>
export type ConfigRead = { ok: true; config: Config } | { ok: false; faults: string[] }

const PREFIX = 'TACHO_'
/**
 * Variables of other commands and the SDK, which may be set in the same shell: they are no settings, but not refused
 * either.
 */
const CLIENT_VARIABLES = [
  'TACHO_URL',
  'TACHO_OPERATOR_TOKEN',
  'TACHO_API_KEY',
  'TACHO_CLIENT_ID',
  'TACHO_RELEASE',
  // Set by scripts/node for the MCP guard.
  'TACHO_OWN_VARIABLES',
]
const ENTRIES = Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]

export type SettingText = ReturnType<typeof settingTexts>[number]

export function settingTexts() {
  return ENTRIES.map(([name, setting]) => ({
    name,
    flag: setting.secret ? null : `${flagOf(name)} <${setting.placeholder}>`,
    variable: variableOf(name),
    help: setting.help,
    byDefault: setting.byDefault,
    fromFile: setting.fromFile ?? false,
  }))
}

export function readConfig(flags: Flags, environment: Environment): ConfigRead {
  const faults = [...unknownFlags(flags), ...unknownVariables(environment)]
  const values: Record<string, unknown> = {}
  for (const [name, setting] of ENTRIES) {
    const settingText = findText(name, setting, flags, environment)
    if ('fault' in settingText) {
      faults.push(settingText.fault)
      continue
    }
    const parsed = settingText.text === null ? { value: null } : setting.parse(settingText.text)
    if ('value' in parsed) values[name] = parsed.value
    else
      faults.push(
        `${settingText.from} must be ${parsed.mustBe}${setting.secret ? '' : `, not ${quoted(settingText.text)}`}.`,
      )
  }
  if (faults.length > 0) return { ok: false, faults }
  const config = Object.freeze(values) as Config
  const together = [workersFault, identityProviderFault, groupRolesFault, mailFault]
    .map((check) => check(config))
    .filter((fault) => fault !== null)
  return together.length === 0 ? { ok: true, config } : { ok: false, faults: together }
}

function workersFault({ workers, databaseUrl }: Config): string | null {
  if (workers === 1 || databaseUrl !== null) return null
  return `--workers ${workers} needs a database, because the embedded store supports one process. Set --database-url, or omit --workers.`
}

function identityProviderFault(config: Config): string | null {
  const needed = ['oidcIssuer', 'oidcClientId', 'oidcClientSecret', 'publicUrl'] as const
  const setSetting = (['oidcIssuer', 'oidcClientId', 'oidcClientSecret', 'oidcDomain'] as const).find(
    (name) => config[name] !== null,
  )
  const missing = needed.filter((name) => config[name] === null).map(variableOf)
  if (setSetting === undefined || missing.length === 0) return null
  return `${variableOf(setSetting)} configures an identity provider, which also needs ${missing.join(', ')}.`
}

function groupRolesFault({ groupRoles: mapping, oidcIssuer, scimToken }: Config): string | null {
  if (mapping === null || oidcIssuer !== null || scimToken !== null) return null
  return 'TACHO_GROUP_ROLES is for groups of an identity provider, which also needs TACHO_OIDC_ISSUER or TACHO_SCIM_TOKEN.'
}

function mailFault({ smtpUrl, mailFrom }: Config): string | null {
  if ((smtpUrl === null) === (mailFrom === null)) return null
  const [given, missing] = smtpUrl === null ? (['mailFrom', 'smtpUrl'] as const) : (['smtpUrl', 'mailFrom'] as const)
  return `${variableOf(given)} is for mail, which also needs ${variableOf(missing)}.`
}

function anyText(settingText: string): string | null {
  return settingText.length > 0 && settingText.length <= 1024 ? settingText : null
}

type Given = { from: string; text: string | null } | { fault: string }

function findText(name: SettingName, setting: Setting<unknown>, flags: Flags, environment: Environment): Given {
  const flag = setting.secret ? undefined : flags[name]
  if (flag !== undefined) return { from: flagOf(name), text: flag }
  const variable = variableOf(name)
  const fileVariable = `${variable}_FILE`
  // Compose and unit files can set an empty variable.
  const value = environment[variable] || null
  const file = (setting.fromFile && environment[fileVariable]) || null
  if (value !== null && file !== null) return { fault: `Set only one of ${variable} and ${fileVariable}.` }
  if (file !== null) return readText(fileVariable, file)
  // A service link gets a message of its own, not one about a bad value.
  if (value === null || isServiceLink(value)) return { from: 'The default', text: setting.byDefault }
  return { from: variable, text: value }
}

function readText(fileVariable: string, file: string): Given {
  try {
    return { from: `The content of ${fileVariable}`, text: readFileSync(file, 'utf8').replace(/\r?\n$/, '') }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return { fault: `${fileVariable} names ${quoted(file)}, which cannot be read (${code}).` }
  }
}

function unknownFlags(flags: Flags): string[] {
  const known = ENTRIES.filter(([, setting]) => !setting.secret).map(([name]) => flagOf(name))
  return Object.keys(flags)
    .map(flagOf)
    .filter((flag) => !known.includes(flag))
    .map((flag) => `There is no flag ${flag}${suggestion(flag, known)}`)
}

function unknownVariables(environment: Environment): string[] {
  const known = ENTRIES.flatMap(([name, { fromFile }]) => [
    variableOf(name),
    ...(fromFile ? [`${variableOf(name)}_FILE`] : []),
  ])
  const unknown = Object.keys(environment)
    .filter((variable) => variable.startsWith(PREFIX) && ![...known, ...CLIENT_VARIABLES].includes(variable))
    .map((variable) => ({ variable, fault: `There is no setting ${variable}${suggestion(variable, known)}` }))
  if (!isServiceLink(environment['TACHO_PORT'])) return unknown.map(({ fault }) => fault)
  return [
    'TACHO_PORT is a service link from Kubernetes, not a port: set enableServiceLinks to false, or rename the Service.',
    ...unknown.filter(({ variable }) => !/^TACHO_(SERVICE|PORT)_/.test(variable)).map(({ fault }) => fault),
  ]
}

/** Kubernetes sets TACHO_PORT=tcp://… and more in each pod when a Service is named tacho. */
function isServiceLink(value: string | undefined): boolean {
  return /^(tcp|udp|sctp):\/\//.test(value ?? '')
}

function suggestion(unknownName: string, known: readonly string[]): string {
  const near = nearestName(unknownName, known)
  return near === null ? '.' : `; did you mean ${near}?`
}

function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

function variableOf(name: SettingName): string {
  return PREFIX + flagOf(name).slice(2).replaceAll('-', '_').toUpperCase()
}

function quoted(settingText: string | null): string {
  return JSON.stringify(settingText !== null && settingText.length > 60 ? `${settingText.slice(0, 60)}…` : settingText)
}

/**
 * How much memory the bodies and the replies of all requests may take, in bytes. It follows from the machine, not from
 * a setting.
 */
export type RequestMemory = Record<'bodies' | 'replies', number>

const MEMORY_MAX = 64 * 1_048_576
/** Enough for four of the largest pages. */
const MEMORY_MIN = 16 * 1_048_576
const MEMORY_PART = 16

/** If the limit of one body was raised, there is still room for three of the largest. */
export function bodyMemory({ bodies }: RequestMemory, largestBody: number): number {
  return largestBody > LIMITS.otlpBytes ? Math.max(bodies, 3 * largestBody) : bodies
}

export function requestMemory(
  available: number = Math.min(os.totalmem(), process.constrainedMemory() || Infinity),
): RequestMemory {
  const bytes = Math.min(MEMORY_MAX, Math.max(MEMORY_MIN, Math.floor(available / MEMORY_PART)))
  return { bodies: bytes, replies: bytes }
}
