/** Where an invitation is accepted. */

/** The path of the page that accepts an invitation. */
export const INVITATION_PATH = '/invitation'

/**
 * The one-time link. `base` is the server's public address; `text` is the credential. It follows the #, which browsers
 * never send to a server.
 */
export function invitationLink(base: string, text: string): string {
  return `${base}${INVITATION_PATH}#${text}`
}
