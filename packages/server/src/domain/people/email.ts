const LOCAL_PART = /^[^\s@<>",;:\\()[\]\p{Cc}]{1,64}$/u
const DOMAIN_LABEL = /^[\p{L}\p{N}]([\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u
const MAX_CHARS = 254

export function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  if (at < 1 || text.length > MAX_CHARS || !text.isWellFormed()) return false
  return (
    LOCAL_PART.test(text.slice(0, at)) &&
    domainOf(text)
      .split('.')
      .every((label) => DOMAIN_LABEL.test(label))
  )
}

/** A letter that is not ASCII stays so: the Kelvin sign is no k, and `\u212aate@` not the address of kate@. */
export function lowerCase(text: string): string {
  return text.replace(/[^\p{Ll}]/gu, (letter) => {
    const lower = letter.toLowerCase()
    return letter > '\u007f' && /[a-z]/.test(lower) ? letter : lower
  })
}

export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}
