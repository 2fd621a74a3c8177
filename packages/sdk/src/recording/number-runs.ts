/** At most one of these between two groups of a number. */
const GROUP_SEPARATOR = String.raw`[ \u00a0\u2000-\u200a\u202f.\u00b7\u2010-\u2015-]`
/** May contain card or account numbers. */
export const CARD_RUN = new RegExp(String.raw`\d(?:${GROUP_SEPARATOR}?\d){12,}`, 'g')
export const IBAN_RUN = new RegExp(String.raw`\b[A-Z]{2}\d{2}(?:${GROUP_SEPARATOR}?[A-Z\d]){11,}`, 'gi')
