/** Checksums that distinguish card and account numbers from other numbers. */

/** Luhn, with 13 to 19 digits. */
export function isCardNumber(text: string): boolean {
  const digits = text.replace(/\D/g, '')
  if (digits.length < 13 || digits.length > 19 || /^(\d)\1+$/.test(digits)) return false
  let sum = 0
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place])
    const doubled = place % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** ISO 13616: modulo 97 of the rearranged number is 1. */
export function isIban(text: string): boolean {
  const iban = text.replace(/ /g, '')
  if (iban.length < 15 || iban.length > 34) return false
  let rest = 0
  for (const char of iban.slice(4) + iban.slice(0, 4)) {
    const number = Number.parseInt(char, 36)
    rest = (rest * (number > 9 ? 100 : 10) + number) % 97
  }
  return rest === 1
}
