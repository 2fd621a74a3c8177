import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  NotificationChoice,
  NotificationSettings,
  NotificationSettingsChange,
} from '@tacho/contract/messages/notification.ts'
import { saysInput, sentenceText } from '@tacho/contract/approvals/sentence-text.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import type { FastifyRequest } from 'fastify'
import { askingTexts, callSentence } from '../../domain/approvals/call-sentence.ts'
import { inputsInShort } from '../../domain/approvals/recorded-input.ts'
import {
  endpointFault,
  endpointHash,
  isPublicKey,
  isTimeZone,
  notificationText,
  toNotificationSettings,
  toNotifiedBrowser,
} from '../../domain/messages/notification.ts'
import type { BrowserRow } from '../../storage/messages/messages.ts'
import type { SessionRow } from '../../storage/people/operators.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import { refuseField } from '../web/field.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { actorOf } from '../people/access.ts'
import { sessionOf } from '../people/sessions.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const NO_BROWSER = refuse('not_found', 'The account has no such browser')
const NO_ACCOUNT = refuse('not_found', 'The account does not exist')
const NO_SUBJECT = refuse('not_found', 'The approval, alert or issue does not exist')
const COUNTED = 100

export function notificationsRoutes({ serve, storage, checkWebhookUrl, pushPublicKey }: OperatorDeps): void {
  serve('readNotificationSettings', ({ request }) => settingsOf(request))

  serve('changeNotificationSettings', async ({ body, request, audit }) => {
    const { operator } = sessionOf(request)
    const { quietHours } = body
    if (quietHours) checkQuietHours(quietHours)
    const choices = body.environments && (await choicesOf(request, body.environments))
    const entries = audit(operator.id, { environments: choices, quietHours })
    const isChanged = await storage.changeNotificationSettings(operator.id, { choices, quietHours }, entries)
    return isChanged ? settingsOf(request) : NO_ACCOUNT
  })

  serve('addNotifiedBrowser', async ({ body, request, at, audit }) => {
    const session = sessionOf(request)
    const { endpoint, keys, renew = false } = body
    const row: BrowserRow = {
      id: uuidv7(at),
      operatorId: session.operator.id,
      sessionId: session.sessionId,
      endpoint,
      endpointHash: endpointHash(endpoint),
      publicKey: keys.p256dh,
      authSecret: keys.auth,
      userAgent: userAgentOf(request),
      addedAt: at,
      openedAt: at,
      notifiedAt: null,
    }
    if (!isPublicKey(keys.p256dh)) throw refuseField('keys.p256dh', 'must be a point of the curve P-256')
    if (renew) {
      const renewed = foundOr(await storage.renewBrowser(row.operatorId, row), NO_BROWSER)
      return toNotifiedBrowser(renewed, session.sessionId)
    }
    const fault = endpointFault(endpoint) ?? (await checkWebhookUrl(endpoint))
    if (fault !== null) throw refuseField('endpoint', fault)
    const added = await storage.addBrowser(row, audit(row.id, { host: hostOf(row) }))
    if (added === 'gone') return NO_ACCOUNT
    if (added === 'too_many') return refuse('conflict', `An account has at most ${LIMITS.notifiedBrowsers} browsers`)
    return toNotifiedBrowser(row, session.sessionId)
  })

  serve('removeNotifiedBrowser', async ({ params, request, audit }) => {
    const { operator, sessionId } = sessionOf(request)
    const id = params.browserId.toLowerCase()
    const row = foundOr(await storage.removeBrowser(operator.id, id, audit(id)), NO_BROWSER)
    return toNotifiedBrowser(row, sessionId)
  })

  serve(
    'readNotification',
    async ({ params, environment: { id: environmentId, name: environment, workspaceId }, at }) => {
      const { event } = params
      const [notice] = await storage.findNotices(environmentId, event, [params.subjectId.toLowerCase()], at)
      if (!notice) return NO_SUBJECT
      const waiting =
        event === 'approval.requested' ? await storage.countWaitingApprovals(environmentId, at, COUNTED) : 0
      const place = { environment, url: `/w/${workspaceId}/${environmentId}` }
      const sentence = event === 'approval.requested' ? await sentenceOf(environmentId, workspaceId, notice.id) : null
      return notificationText(event, notice, place, waiting, sentence)
    },
  )

  /** The sentence that describes the call; null: the input is unknown. */
  async function sentenceOf(environmentId: string, workspaceId: string, id: string): Promise<string | null> {
    const rows = await storage.findApprovals(environmentId, [id])
    const [[input], [asking = null]] = await Promise.all([
      inputsInShort(storage, environmentId, rows),
      askingTexts(storage, workspaceId, rows),
    ])
    const [row] = rows
    const sentence = row ? callSentence(row.toolName, input?.decision ?? null, asking) : []
    return saysInput(sentence) ? printable(sentenceText(sentence)) : null
  }

  async function settingsOf(request: FastifyRequest): Promise<NotificationSettings> {
    const { operator, sessionId }: SessionRow = sessionOf(request)
    const row = await storage.readNotificationSettings(operator.id)
    const { roleIn } = actorOf(request)
    // Leaves out workspaces in which the person has lost the role.
    const choices = row.choices.filter(({ workspaceId }) => roleIn(workspaceId) !== null)
    return toNotificationSettings({ ...row, choices }, pushPublicKey, sessionId)
  }

  async function choicesOf(
    request: FastifyRequest,
    environmentChoices: NonNullable<NotificationSettingsChange['environments']>,
  ): Promise<Omit<NotificationChoice, 'workspaceId'>[]> {
    const { roleIn } = actorOf(request)
    const choices = new Map<string, Omit<NotificationChoice, 'workspaceId'>>()
    for (const { environmentId, kinds, severity } of environmentChoices) {
      const { workspace, environment } = await storage.findTenant(environmentId.toLowerCase())
      if (!environment || !workspace || roleIn(workspace.id) === null) {
        throw refuseField('environments', 'names an environment that does not exist')
      }
      choices.set(environment.id, { environmentId: environment.id, kinds, severity })
    }
    return [...choices.values()]
  }
}

function checkQuietHours({ fromMinute, toMinute, timeZone }: NonNullable<NotificationSettingsChange['quietHours']>) {
  if (fromMinute === toMinute) throw refuseField('quietHours', 'must end at another minute than they begin')
  if (!isTimeZone(timeZone)) throw refuseField('quietHours.timeZone', 'must be an IANA name, such as Europe/Berlin')
}

/** Shows only the host, because the path is a secret of the browser. */
const hostOf = ({ endpoint }: BrowserRow): string => new URL(endpoint).host

function userAgentOf({ headers }: FastifyRequest): string {
  return (headers['user-agent'] ?? '').slice(0, LIMITS.userAgentChars)
}
