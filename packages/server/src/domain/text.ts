/** Whether every store keeps the text as it is: without NUL, and well-formed (no lone surrogates). */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}
