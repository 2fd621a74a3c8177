import { readFileSync } from 'node:fs'
import type { ClientConfig } from 'pg'
import { StoreRefused } from '../engine/store.ts'

export interface Address {
  config: Pick<ClientConfig, 'connectionString' | 'ssl' | 'application_name'>
  /** Without the password. */
  shown: string
}

const SSL_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey']
const OTHER_PARAMETERS = ['host', 'application_name']

/** `sslmode` as in libpq, but `prefer` and `allow` are refused: they guarantee nothing. Without it, no encryption. */
export function parseAddress(addressText: string): Address {
  const url = URL.parse(addressText)
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol)) {
    throw new StoreRefused('The database URL must have the form postgres://user:password@host:port/database.')
  }
  const parameters = Object.fromEntries(url.searchParams)
  for (const name of Object.keys(parameters)) {
    if (![...SSL_PARAMETERS, ...OTHER_PARAMETERS].includes(name)) {
      throw new StoreRefused(`The database URL has an unknown parameter ${name}.`)
    }
  }
  for (const name of SSL_PARAMETERS) url.searchParams.delete(name)
  const host = parameters['host'] ?? url.host
  return {
    config: {
      connectionString: url.href,
      ssl: tlsOptions(parameters),
      application_name: parameters['application_name'] ?? 'tacho',
    },
    shown: `${host}${url.pathname}`,
  }
}

type Tls = Exclude<ClientConfig['ssl'], undefined>

function tlsOptions(parameters: Record<string, string | undefined>): Tls {
  const { sslmode = 'disable', sslrootcert, sslcert, sslkey } = parameters
  if (sslmode === 'disable') return false
  const checksRoot = sslrootcert !== undefined && sslrootcert !== 'system'
  const certificates = {
    // Without a CA file, Node's trusted authorities apply.
    ...(checksRoot && { ca: certificate('sslrootcert', sslrootcert) }),
    ...(sslcert !== undefined && { cert: certificate('sslcert', sslcert) }),
    ...(sslkey !== undefined && { key: certificate('sslkey', sslkey) }),
  }
  const anyName = { checkServerIdentity: () => undefined }
  if (sslmode === 'verify-full') return certificates
  // As in libpq: with a root certificate, `require` checks what `verify-ca` checks.
  if (sslmode === 'require')
    return checksRoot ? { ...certificates, ...anyName } : { ...certificates, rejectUnauthorized: false }
  if (sslmode !== 'verify-ca') {
    throw new StoreRefused(
      `sslmode must be disable, require, verify-ca or verify-full, not ${JSON.stringify(sslmode)}.`,
    )
  }
  // Anyone can get a certificate from a public authority for their own name.
  if (!checksRoot) throw new StoreRefused("sslmode=verify-ca needs your own authority's certificate in sslrootcert.")
  return { ...certificates, ...anyName }
}

function certificate(parameter: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StoreRefused(`${parameter} names ${JSON.stringify(file)}, which cannot be read (${code}).`)
  }
}
