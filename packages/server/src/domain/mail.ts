import { printable } from '@tacho/contract/shown-text.ts'
import { isEmail, lowerCase } from './email.ts'
import { ABOUT_CHARS, cut, FACT_CHARS, OPEN, toTold, type WebhookNews } from './webhook-formats.ts'

export interface MailMessage {
  /** The same in each attempt, so that a mail server can drop a repetition. */
  id: string
  to: string
  subject: string
  text: string
}

const SUBJECT_CHARS = 140
const SCHEME = 'mailto:'

export function mailAddressOf(url: string): string | null {
  const address = url.toLowerCase().startsWith(SCHEME) ? url.slice(SCHEME.length) : ''
  return isEmail(address) ? lowerCase(address) : null
}

export function mailMessage(news: WebhookNews, to: string): MailMessage {
  const { title, about, facts, url } = toTold(news)
  const parts = [
    title,
    ...(about === null ? [] : [asText(cut(about, ABOUT_CHARS))]),
    facts.map(({ label, text }) => `${label}: ${asText(cut(text, FACT_CHARS))}`).join('\n'),
    ...(url === null ? [] : [`${OPEN}:\n${url}`]),
    `An admin chose this address for ${asText(printable(news.place?.environment ?? 'an environment'))}. The link decides nothing: you sign in first.`,
  ]
  return {
    id: news.id,
    to,
    subject: cut(about === null ? title : `${title}: ${asText(about)}`, SUBJECT_CHARS),
    text: `${parts.filter((part) => part !== '').join('\n\n')}\n`,
  }
}

/** Without slashes. */
const SCHEMES = /\b(mailto|tel|sms|callto|skype|news|data|javascript):/gi
/** Of a name, also in the forms that browsers take for a dot. A file may be called `report.zip`, which is a host, too. */
const HOST_DOTS = /(?<=[\p{L}\p{N}_-])[.\u3002\uff0e\uff61](?=\p{L}[\p{L}\p{N}-]|xn--)/gu
const ADDRESS = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)/g

/** Mail programs make links of addresses in plain text: those of clients must not stand beside ours. */
function asText(text: string): string {
  return text
    .replaceAll('://', '[:]//')
    .replace(SCHEMES, '$1[:]')
    .replace(HOST_DOTS, '[.]')
    .replace(ADDRESS, (address) => address.replaceAll('.', '[.]'))
}
