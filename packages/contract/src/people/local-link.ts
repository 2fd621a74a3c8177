/** The host of an address; an IPv6 host with its brackets. */
const HOST = /^\w+:\/\/(\[[^\]]*\]|[^/:?#]*)/
const LOOPBACK = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\])$/

/**
 * Warns that a link opens only on the server's machine, because the server has no public address. Null: it also opens
 * elsewhere.
 */
export function localLinkWarning(link: string): string | null {
  const [, host = ''] = HOST.exec(link) ?? []
  if (!LOOPBACK.test(host)) return null
  return (
    `This link opens only on the server's own machine (${host}). ` +
    'For anybody else, start the server with --public-url (TACHO_PUBLIC_URL) and the address that people use, and invite again.'
  )
}
