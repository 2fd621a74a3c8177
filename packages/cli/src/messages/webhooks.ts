import { allItems, eachItem, taken } from '@tacho/client/items.ts'
import type {
  CreatedWebhook,
  Delivery,
  DeliveryStatus,
  Webhook,
  WebhookEvent,
  WebhookFormat,
} from '@tacho/contract/messages/webhook.ts'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { setTimeout as sleep } from 'node:timers/promises'
import { connected } from '../engine/connected.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import {
  inEnvironment,
  mostOf,
  pageSize,
  withPages,
  withYes,
  type EnvironmentOptions,
  type PageOptions,
} from '../engine/options.ts'
import { askSecret, assertConfirmed, type ConfirmOptions } from '../engine/ask.ts'
import { printable, printJson, printLine, printMore, printTable, spokenTime } from '../engine/output.ts'
import { DELIVERY_STATUSES, WEBHOOK_EVENTS, WEBHOOK_FORMATS } from '@tacho/contract/engine/words.ts'

/** Longest wait for a test delivery: a receiver has ten seconds to answer. */
const ANSWER_WAIT_MS = 12_000
const ANSWER_POLL_MS = 250
const DELIVERIES_READ = 25

interface CreateOptions extends EnvironmentOptions {
  events?: WebhookEvent[]
  description?: string
  format: WebhookFormat
  signingSecret?: true
  showInput?: true
}

interface ChangeOptions extends EnvironmentOptions {
  to?: string
  events?: WebhookEvent[]
  description?: string
  enable?: true
  disable?: true
  /** False with --no-signing-secret. */
  signingSecret?: boolean
  /** False with --no-show-input. */
  showInput?: boolean
}

interface DeliveriesOptions extends EnvironmentOptions, PageOptions {
  status?: DeliveryStatus
}

const SHOW_INPUT = 'messages about requests for approval have the beginning of the recorded input'
const SIGNING_SECRET = 'ask for the signing secret of the Slack app, or read it from standard input: decisions in Slack'

export function addWebhooks(webhooks: Command): void {
  inEnvironment(webhooks.command('list').description('list webhooks')).action(list)

  inEnvironment(webhooks.command('create <url>').description('create a webhook and print its secret once'))
    .option(
      '--events <names>',
      `events to send, separated by commas: ${WEBHOOK_EVENTS.join(', ')}; default: all`,
      parseEvents,
    )
    .option('--description <text>', 'purpose of the webhook')
    .addOption(new Option('--format <format>', 'message format').choices(WEBHOOK_FORMATS).default('standard'))
    .option('--signing-secret', SIGNING_SECRET)
    .option('--show-input', SHOW_INPUT)
    .addHelpText(
      'after',
      `
Messages are signed with Standard Webhooks; docs/webhooks.md shows how to verify them. Only the secret is written to
stdout. The address must be public, unless the server's --webhook-networks allows it.

Examples:
  tacho webhooks create https://example.com/tacho --events approval.requested,issue.opened > webhook.secret
  tacho webhooks create https://hooks.slack.com/services/T0/B0/x --format slack --events approval.requested
  tacho webhooks create https://hooks.slack.com/services/T0/B0/x --format slack --signing-secret < slack.secret
  tacho webhooks create 'https://events.pagerduty.com/v2/enqueue?routing_key=R0' --format pagerduty --events alert.firing,alert.resolved
  tacho webhooks create mailto:ada@example.com --format mail --events approval.requested,alert.firing`,
    )
    .action(create)

  inEnvironment(webhooks.command('change <webhookId>').description('change, enable or disable a webhook'))
    .option('--to <url>', 'new address')
    .option('--events <names>', 'events to send, separated by commas', parseEvents)
    .option('--description <text>', 'purpose of the webhook')
    .addOption(new Option('--enable', 'send again').conflicts('disable'))
    .option('--disable', 'stop sending')
    .option('--signing-secret', SIGNING_SECRET)
    .option('--no-signing-secret', 'stop decisions in Slack, and remove the links of its users')
    .option('--show-input', SHOW_INPUT)
    .option('--no-show-input', 'leave the input out of messages')
    .action(change)

  inEnvironment(
    webhooks.command('rotate <webhookId>').description('print a new secret; the old one stays valid for a day'),
  ).action(rotate)
  inEnvironment(
    webhooks.command('test <webhookId>').description('send a test message, and wait for the answer'),
  ).action(test)
  withYes(inEnvironment(webhooks.command('remove <webhookId>').description('remove a webhook and its log'))).action(
    remove,
  )

  inEnvironment(
    webhooks.command('slack-users <webhookId>').description('list the Slack users who decide, and as whom'),
  ).action(slackUsers)
  withYes(
    inEnvironment(webhooks.command('unlink <webhookId> <linkId>').description('remove the link of a Slack user')),
  ).action(unlink)

  withPages(inEnvironment(webhooks.command('deliveries <webhookId>').description('list deliveries, newest first')), 25)
    .addOption(new Option('--status <status>', 'only deliveries with this status').choices(DELIVERY_STATUSES))
    .action(deliveries)

  inEnvironment(webhooks.command('redeliver <webhookId> <deliveryId>').description('send a message again')).action(
    redeliver,
  )
}

function parseEvents(text: string): WebhookEvent[] {
  return text.split(',').map((name) => {
    const event = WEBHOOK_EVENTS.find((known) => known === name.trim())
    if (event === undefined) throw new InvalidArgumentError(`Each must be one of ${WEBHOOK_EVENTS.join(', ')}.`)
    return event
  })
}

async function list(options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const items = await allItems(client.listWebhooks, { params: { environmentId } })
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'ADDRESS' },
      { title: 'FORMAT', isOptional: true },
      { title: 'STATE' },
      { title: 'EVENTS' },
    ],
    items.map((webhook) => [webhook.id, webhook.url, webhook.format, stateOf(webhook), webhook.events.join(', ')]),
    'No webhooks. `tacho webhooks create <url>` makes one.',
  )
}

function stateOf({ disabledAt, disabledReason, damaged }: Webhook): string {
  if (damaged) return 'damaged'
  return disabledAt === null ? 'enabled' : `disabled${disabledReason === null ? '' : `: ${disabledReason}`}`
}

async function create(url: string, options: CreateOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { events, description, format } = options
  const optional = { ...(events && { events }), ...(description !== undefined && { description }) }
  const shown = options.showInput && { showsInput: true }
  const body = {
    url,
    format,
    ...optional,
    ...shown,
    ...(options.signingSecret && { signingSecret: await askSigningSecret() }),
  }
  printSecret(await client.createWebhook({ params: { environmentId }, body }), options)
}

async function rotate(webhookId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  printSecret(await client.rotateWebhookSecret({ params: { environmentId, webhookId } }), options)
}

function printSecret(webhook: CreatedWebhook, { json }: EnvironmentOptions): void {
  if (json) return printJson(webhook)
  const made = `Webhook ${webhook.id} to ${printable(webhook.url)}.`
  // For other formats, do not print the secret: it could be confused with a Slack app's signing secret. Only a relay in
  // front of a chat could check it.
  if (webhook.format === 'standard') {
    process.stderr.write(`${made} Its secret is shown only once:\n`)
    printLine(webhook.secret)
  } else {
    process.stderr.write(`${made} Chats, PagerDuty and mail check no signature, so no secret is shown.\n`)
    process.stderr.write(`For a relay that checks one: tacho webhooks rotate ${webhook.id} --json\n`)
  }
  printRequestUrl(webhook)
}

async function askSigningSecret(): Promise<string> {
  return (await askSecret('Signing secret of the Slack app: ')).trim()
}

function printRequestUrl({ interactionsUrl }: Webhook): void {
  if (interactionsUrl !== null)
    process.stderr.write(`Request URL for the interactivity of the Slack app: ${interactionsUrl}\n`)
}

async function change(webhookId: string, options: ChangeOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { to, events, description } = options
  const body = {
    ...(to !== undefined && { url: to }),
    ...(events && { events }),
    ...(description !== undefined && { description }),
    ...(options.showInput !== undefined && { showsInput: options.showInput }),
    ...((options.enable || options.disable) && { enabled: options.enable === true }),
    ...(options.signingSecret !== undefined && {
      signingSecret: options.signingSecret ? await askSigningSecret() : null,
    }),
  }
  printWebhook(await client.changeWebhook({ params: { environmentId, webhookId }, body }), options)
}

async function remove(webhookId: string, options: EnvironmentOptions & ConfirmOptions): Promise<void> {
  await assertConfirmed(`Remove the webhook ${webhookId} and its log?`, options)
  const { client, environmentId } = await connected(options)
  const webhook = await client.removeWebhook({ params: { environmentId, webhookId } })
  if (options.json) printJson(webhook)
  else printLine(`Webhook ${webhook.id} to ${printable(webhook.url)} was removed.`)
}

function printWebhook(webhook: Webhook, { json }: EnvironmentOptions): void {
  if (json) return printJson(webhook)
  printLine(`Webhook ${webhook.id} to ${printable(webhook.url)} is ${stateOf(webhook)}: ${webhook.events.join(', ')}.`)
  printRequestUrl(webhook)
}

async function slackUsers(webhookId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const items = await allItems(client.listSlackLinks, { params: { environmentId, webhookId } })
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'SLACK USER' },
      { title: 'TEAM' },
      { title: 'DECIDES AS' },
      { title: 'LINKED', as: 'time' },
    ],
    items.map((link) => [
      link.id,
      `${link.userName} (${link.userId})`,
      `${link.teamName} (${link.teamId})`,
      link.operator.email,
      link.linkedAt,
    ]),
    'No Slack user is linked. `tacho webhooks change <id> --signing-secret` gives messages their buttons.',
  )
}

async function unlink(webhookId: string, linkId: string, options: EnvironmentOptions & ConfirmOptions): Promise<void> {
  await assertConfirmed(`Remove the link ${linkId}?`, options)
  const { client, environmentId } = await connected(options)
  const link = await client.removeSlackLink({ params: { environmentId, webhookId, linkId } })
  if (options.json) printJson(link)
  else printLine(`${printable(link.userName)} no longer decides as ${printable(link.operator.email)}.`)
}

async function test(webhookId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const params = { environmentId, webhookId }
  const delivery = await attempted(client, params, await client.testWebhook({ params }))
  const { attempts, status, responseStatus, error, nextAttemptAt } = delivery
  if (attempts === 0) return printQueued(delivery, options)
  if (status !== 'DELIVERED') process.exitCode = 1
  if (options.json) return printJson(delivery)
  if (status === 'DELIVERED') return printLine(`The receiver answered ${responseStatus ?? 'that it has the message'}.`)
  const again = nextAttemptAt === null ? '' : `; the next attempt is ${spokenTime(nextAttemptAt)}`
  printLine(`The message was not delivered: ${printable(error ?? String(responseStatus ?? 'no answer'))}${again}`)
}

/** The delivery after its first attempt, or its state when the wait ends. */
async function attempted(client: OperatorClient, params: { environmentId: string; webhookId: string }, sent: Delivery) {
  for (const until = Date.now() + ANSWER_WAIT_MS; Date.now() < until;) {
    await sleep(ANSWER_POLL_MS)
    const { items } = await client.listDeliveries({ params, query: { limit: DELIVERIES_READ } })
    const delivery = items.find(({ id }) => id === sent.id)
    if (delivery && delivery.attempts > 0) return delivery
  }
  return sent
}

async function redeliver(webhookId: string, deliveryId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  printQueued(await client.redeliver({ params: { environmentId, webhookId, deliveryId } }), options)
}

function printQueued(delivery: Delivery, { json }: EnvironmentOptions): void {
  if (json) return printJson(delivery)
  printLine(`Delivery ${delivery.id} is queued; \`tacho webhooks deliveries\` shows the result.`)
}

async function deliveries(webhookId: string, options: DeliveriesOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const query = { limit: pageSize(mostOf(options)), ...(options.status && { status: options.status }) }
  const all = eachItem(client.listDeliveries, { params: { environmentId, webhookId }, query })
  const { items, hasMore } = await taken(all, mostOf(options))
  if (options.json) return printJson({ items, hasMore })
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'EVENT' },
      { title: 'STATUS', as: 'word' },
      { title: 'ATTEMPTS' },
      { title: 'CREATED', as: 'time' },
      { title: 'ANSWER' },
    ],
    items.map((each) => [
      each.id,
      each.type,
      each.status,
      String(each.attempts),
      each.createdAt,
      each.error ?? String(each.responseStatus ?? ''),
    ]),
    'No deliveries. `tacho webhooks test <id>` sends one.',
  )
  printMore(hasMore)
}
