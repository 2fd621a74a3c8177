/**
 * `base` is the server's public address; `text` is the credential. It follows the #, which browsers never send to a
 * server.
 */
export function invitationLink(base: string, text: string): string {
  return `${base}/invitation#${text}`
}
