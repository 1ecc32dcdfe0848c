/**
 * `postroad send`: one test mail, with its trace.
 *
 * It goes through the same door and the same queue as every other mail, so what it shows is what happens to them; a
 * running server delivers it while this command looks on. `--dry-run` shows the mail and its route and sends nothing.
 */
import { given } from '../../core/given.js'
import type { Command } from 'commander'
import { listWorkspaces, type Workspace } from '../../accounts/workspace-store.js'
import type { Appliance } from '../../appliance/appliance.js'
import { AppError } from '../../core/errors.js'
import { isServing } from '../../db/sqlite/serve-lock.js'
import { readSigningKeys } from '../../deliverability/domains/domain-store.js'
import type { Principal } from '../../http/principal.js'
import { SlidingWindow } from '../../http/sliding-window.js'
import { addressDomain, parseAddress } from '../../mail/address.js'
import { octetsToText } from '../../mail/mime/charset.js'
import { messageWithTrace } from '../../msa/log/message-view.js'
import { mergingOf, requireReadable } from '../../msa/merged-content.js'
import { sendEmail } from '../../msa/rest/send-email.js'
import { readSenderFields, withWorkspaceSender } from '../../msa/rest/fields/sender-fields.js'
import { resolveSender } from '../../msa/sender.js'
import { SenderCache } from '../../msa/sender-cache.js'
import { openRenderer } from '../../mta/render.js'
import { findRoute } from '../../mta/routing/route.js'
import { findAnyMessage, type Message } from '../../messages/message-store.js'
import { linkOptions, routerParts } from '../../appliance/open-delivery.js'
import {
  command,
  mustFindWorkspace,
  printResult,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from '../context.js'
import { messageText } from './message.js'

interface SendOptions extends CommonOptions {
  readonly from: string
  readonly to: string
  readonly subject: string
  readonly text?: string
  readonly html?: string
  readonly workspace?: string
  readonly dryRun?: boolean
}

/** How long the command looks on before it leaves the mail to the queue. */
const LOOK_ON_MS = 30_000
const LOOK_EVERY_MS = 200

export function sendCommand(program: Command, context: CliContext): void {
  command(program, 'send', 'send one test mail and show its trace')
    .requiredOption('--from <address>', 'sender')
    .requiredOption('--to <address>', 'recipient')
    .requiredOption('--subject <text>', 'subject')
    .option('--text <text>', 'plain text body')
    .option('--html <html>', 'HTML body')
    .option('--workspace <name|id>', 'on behalf of this workspace (default: the oldest)')
    .option('--dry-run', 'show the mail and its route, send nothing')
    .action(async (options: SendOptions) => {
      await withAppliance(context, options, async appliance => {
        const workspace = await chooseWorkspace(appliance, options)
        if (options.dryRun) await dryRun(appliance, workspace, context, options)
        else await send(appliance, workspace, context, options)
      })
    })
}

async function chooseWorkspace({ database }: Appliance, { workspace: id }: SendOptions): Promise<Workspace> {
  if (id !== undefined) return mustFindWorkspace(database.reader, id)
  const [oldest] = await listWorkspaces(database.reader)
  if (!oldest) throw new AppError('not_found', 'there is no workspace yet; make one with: postroad init')
  return oldest
}

function bodyOf({ text, html }: SendOptions): { text?: string; html?: string } {
  if (text === undefined && html === undefined) return { text: 'This is a test mail.\n' }
  return { ...given({ text, html }) }
}

async function send(
  appliance: Appliance,
  workspace: Workspace,
  context: CliContext,
  options: SendOptions,
): Promise<void> {
  const { config, world, database, newId, watch } = appliance
  const { value } = await sendEmail(
    {
      database,
      clock: world.clock,
      newId,
      emailWindows: new SlidingWindow(world.clock),
      expireMs: config.mta.retry.expireMs,
      onEnqueued: () => {}, // the server notices by itself
      senders: new SenderCache(database.reader, watch, config.mta.sharedAddress ?? ''),
      messageLimit: config.limits.messageSizeBytes,
    },
    operatorOf(workspace),
    { to: options.to, subject: options.subject, from_email: options.from, ...bodyOf(options) },
  )
  const id = 'results' in value ? (value.results[0]?.message_id ?? '') : value.message_id
  if (!isServing(config.dataDir)) context.complain('the server does not run: the mail waits in the queue')
  else await lookOn(appliance, id)
  const message = await mustFind(appliance, id)
  const view = await messageWithTrace(database.reader, message)
  printResult(context, options, view, () => messageText(view, appliance.returnPath(id, message.recipient)))
  if (message.status === 'sent')
    context.complain('not delivered yet: it waits in the queue and is tried again')
  if (message.status === 'bounced' || message.status === 'failed' || message.status === 'suppressed')
    context.fail()
}

/** Until the message has a final status or a first attempt behind it. */
async function lookOn(appliance: Appliance, id: string): Promise<void> {
  const { clock } = appliance.world
  const until = clock.monotonic() + LOOK_ON_MS
  while (clock.monotonic() < until) {
    const message = await mustFind(appliance, id)
    if (message.status !== 'sent') return
    const { trace } = await messageWithTrace(appliance.database.reader, message)
    if (trace.length > 0) return
    await clock.sleep(LOOK_EVERY_MS)
  }
}

async function mustFind({ database }: Appliance, id: string): Promise<Message> {
  const message = await findAnyMessage(database.reader, id)
  if (!message) throw new AppError('not_found', `no message ${id}`)
  return message
}

async function dryRun(
  appliance: Appliance,
  workspace: Workspace,
  context: CliContext,
  options: SendOptions,
): Promise<void> {
  const { config, world, database, domains, newId, returnPath } = appliance
  const to = parseAddress(options.to)
  if (!to) throw new AppError('validation_error', `${options.to} is not an address`, { path: 'to' })
  const asked = withWorkspaceSender(readSenderFields({ from_email: options.from }), workspace)
  const live = { ...workspace, liveId: workspace.id }
  const sender = await resolveSender(database.reader, live, asked, config.mta.sharedAddress ?? '')
  const keys = sender.signingDomainId === null ? [] : [sender.signingDomainId]
  const messageId = newId()
  const bodies = bodyOf(options)
  const source = { subject: options.subject, ...bodies }
  requireReadable(options.subject, 'subject', 'subject')
  for (const place of ['html', 'text'] as const) requireReadable(bodies[place] ?? '', place, place)
  const hasHtml = bodies.html !== undefined
  const { trackOpens, trackClicks } = workspace
  const merging = mergingOf(workspace, {
    source,
    data: undefined,
    hasFooter: hasHtml,
    trackOpens: hasHtml && trackOpens,
    trackClicks: hasHtml && trackClicks,
  })
  const links = linkOptions(appliance)
  const rendering = await openRenderer({ clock: world.clock, hostname: config.hostname, links })({
    messageId,
    workspaceId: workspace.id,
    envelopeSender: returnPath(messageId, to.address),
    recipient: to.address,
    attempt: 1,
    acceptedAt: world.clock.now(),
    content: {
      kind: 'composed',
      from: sender.from,
      ...replyToOf(sender),
      subject: options.subject,
      ...bodies,
      ...given({ merging }),
    },
    signingKeys: [...(await readSigningKeys(database.reader, keys, domains.seal)).values()].flat(),
  })
  const routing = await findRoute(routerParts(appliance), addressDomain(to.address))
  const mail = rendering.kind === 'rendered' ? octetsToText(rendering.message) : rendering.summary
  const route = routing.kind === 'endpoints' ? routing.endpoints.map(describeEndpoint) : [routing.summary]
  printResult(context, options, { mail, route }, () =>
    [mail, 'would go to:', ...route.map(line => `  ${line}`)].join('\n'),
  )
}

function replyToOf({ replyTo }: Awaited<ReturnType<typeof resolveSender>>) {
  return replyTo ? { replyTo } : {}
}

function describeEndpoint({ host, address, port }: { host: string; address: string; port: number }): string {
  return `${host} [${address}]:${port}`
}

/** The operator at the machine may do everything and has no rate. */
function operatorOf(workspace: Workspace): Principal {
  return {
    keyId: 'operator',
    keyName: 'operator',
    workspaceId: workspace.id,
    liveWorkspaceId: workspace.id,
    keyType: 'full_access',
    permissions: ['*'],
    isSandbox: false,
    rateLimit: 0,
    emailRateLimit: 0,
  }
}
