/** The hash of an id decides: that of a run, or of a session with a salt. So all processes agree. */
export function isSampled(id: string, rate: number): boolean {
  return rate >= 1 || hash(id) < rate * 2 ** 32
}

/** FNV-1a with a final mix, so that ids that differ in one character hash far apart. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  return (value ^ (value >>> 13)) >>> 0
}
