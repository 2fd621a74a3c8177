/** Browser and system, as people name them; what is unknown is shown as it was sent. */
export function programOf(userAgent: string | null): string {
  if (userAgent === null) return 'Unknown program'
  const browser = /\b(Edg|Firefox|Chrome|Safari)[/\w]*\//.exec(userAgent)?.[1]
  const system = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(userAgent)?.[0]
  if (browser === undefined) return userAgent
  return `${browser === 'Edg' ? 'Edge' : browser}${system === undefined ? '' : `, ${system}`}`
}
