import { hash, timingSafeEqual } from 'node:crypto'
import type { Random } from '../storage/uuid.ts'

export interface Credential {
  id: string
  hash: string
}

export interface NewCredential extends Credential {
  text: string
}

const API_KEY_PREFIX = 'tacho'
const OPERATOR_TOKEN_PREFIX = 'tacho-operator'
const INVITATION_PREFIX = 'tacho-invitation'
const SLACK_PREFIX = 'tacho-slack'
const ID_BYTES = 8
const SECRET_BYTES = 32

// Neither part contains an underscore, so a text has only one reading. Generated parts have 16 and 64 hex digits; an
// installation can bring its own keys in another form.
const API_KEY = pattern(API_KEY_PREFIX)
const OPERATOR_TOKEN = pattern(OPERATOR_TOKEN_PREFIX)
const INVITATION = pattern(INVITATION_PREFIX)

export const API_KEY_FORM = form(API_KEY_PREFIX)
export const OPERATOR_TOKEN_FORM = form(OPERATOR_TOKEN_PREFIX)

export function newApiKey(random: Random): NewCredential {
  return create(API_KEY_PREFIX, random)
}

export function parseApiKey(text: string): Credential | null {
  return parse(API_KEY, text)
}

export function newOperatorToken(random: Random): NewCredential {
  return create(OPERATOR_TOKEN_PREFIX, random)
}

export function parseOperatorToken(text: string): Credential | null {
  return parse(OPERATOR_TOKEN, text)
}

export function newInvitation(random: Random): NewCredential {
  return create(INVITATION_PREFIX, random)
}

export function parseInvitation(text: string): Credential | null {
  return parse(INVITATION, text)
}

/** With it, a person links a Slack user to their account. */
export function newSlackCode(random: Random): NewCredential {
  return create(SLACK_PREFIX, random)
}

/** A session's token has no public part. */
export function sessionCredential(token: string): Credential {
  const digest = hash('sha256', token)
  return { id: digest, hash: digest }
}

/** In constant time. As texts, because decoding hex is lenient. */
export function sameHash(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'))
}

function create(prefix: string, random: Random): NewCredential {
  const id = Buffer.from(random(ID_BYTES)).toString('hex')
  const text = `${prefix}_${id}_${Buffer.from(random(SECRET_BYTES)).toString('hex')}`
  return { id, text, hash: hash('sha256', text) }
}

function parse(format: RegExp, text: string): Credential | null {
  const id = format.exec(text)?.[1]
  return id === undefined ? null : { id, hash: hash('sha256', text) }
}

function pattern(prefix: string): RegExp {
  return new RegExp(`^${prefix}_([0-9A-Za-z]{8,64})_[0-9A-Za-z]{32,128}$`)
}

function form(prefix: string): string {
  return `${prefix}_<id>_<secret>, id of 8 to 64 and secret of 32 to 128 letters and digits`
}
