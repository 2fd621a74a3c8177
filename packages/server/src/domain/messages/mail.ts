import { printable } from '@tacho/contract/engine/shown-text.ts'
import { isEmail, lowerCase } from '../people/email.ts'
import { ABOUT_CHARS, cut, FACT_CHARS, OPEN, toTold, withoutLinks, type WebhookNews } from './webhook-formats.ts'

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
    ...(about === null ? [] : [withoutLinks(cut(about, ABOUT_CHARS))]),
    facts.map(({ label, text }) => `${label}: ${withoutLinks(cut(text, FACT_CHARS))}`).join('\n'),
    ...(url === null ? [] : [`${OPEN}:\n${url}`]),
    `An admin chose this address for ${withoutLinks(printable(news.place?.environment ?? 'an environment'))}. The link decides nothing: you sign in first.`,
  ]
  return {
    id: news.id,
    to,
    subject: cut(about === null ? title : `${title}: ${withoutLinks(about)}`, SUBJECT_CHARS),
    text: `${parts.filter((part) => part !== '').join('\n\n')}\n`,
  }
}
