/** The credential follows the #, which browsers never send to a server. */
export function invitationLink(base: string, text: string): string {
  return `${base}/invitation#${text}`
}
