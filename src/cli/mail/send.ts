/**
 * `postroad send`: sends one mail, from options or standard input, and shows its trace.
 *
 * The input is the text of a mail, as mail(1) reads it, or a whole message, as sendmail(8) does. It takes the same path as all other mail, and a
 * running server delivers it while this command waits. `--dry-run` shows the mail and its route without sending.
 * Fails as submission does, with AppError or SmtpRefusal.
 */
import type { Command } from 'commander'
import { listWorkspaces, type Workspace } from '../../accounts/workspace-store.js'
import type { Appliance } from '../../appliance/appliance.js'
import { linkOptions, routerParts } from '../../appliance/open-delivery.js'
import { SHELL } from '../../core/actor.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isServing } from '../../db/sqlite/serve-lock.js'
import { readSigningKeys } from '../../deliverability/domains/domain-store.js'
import type { Principal } from '../../http/principal.js'
import { SlidingWindow } from '../../http/sliding-window.js'
import { addressDomain, parseAddress } from '../../mail/address.js'
import { octetsToText } from '../../mail/mime/charset.js'
import { unfoldedValue } from '../../mail/mime/header-fields.js'
import { mailboxesOf, readAddressList } from '../../mail/relay/address-list.js'
import { assertNoFaults, readRelayedHeader } from '../../mail/relay/relayed-header.js'
import { findAnyMessage, type Message } from '../../messages/message-store.js'
import { messageWithTrace } from '../../msa/log/message-view.js'
import { mergingOf, requireReadable } from '../../msa/merged-content.js'
import type { SubmitParts } from '../../msa/mail-submission.js'
import { readSenderFields, withWorkspaceSender } from '../../msa/rest/address-fields.js'
import { sendEmail } from '../../msa/rest/send-email.js'
import { resolveSender, SenderCache } from '../../msa/sender.js'
import { SubmissionGatherer } from '../../msa/submission/submission-gatherer.js'
import { SubmissionTransaction } from '../../msa/submission/submission-transaction.js'
import { openRenderer } from '../../mta/render.js'
import { findRoute } from '../../mta/routing/route.js'
import { SmtpRefusal } from '../../smtp/receiver.js'
import {
  type CliContext,
  type CommonOptions,
  getWorkspace,
  printResult,
  UsageError,
  withAppliance,
} from '../context.js'
import { command } from '../options.js'
import { messageText } from './message.js'

interface SendOptions extends CommonOptions {
  readonly from?: string
  readonly to?: string
  readonly subject?: string
  readonly text?: string
  readonly html?: string
  readonly workspace?: string
  readonly dryRun?: boolean
}

/** How long the command waits for the first attempt. */
const WAIT_MS = 30_000
const POLL_MS = 200

export function sendCommand(program: Command, context: CliContext): void {
  command(program, 'send', 'send one mail and show its trace')
    .option('--from <address>', 'sender')
    .option('--to <address>', 'recipient')
    .option('--subject <text>', 'subject')
    .option('--text <text>', 'plain text body; - is standard input')
    .option('--html <html>', 'HTML body')
    .option('--workspace <name|id>', 'workspace to send from (default: the oldest)')
    .option('--dry-run', 'show the mail and its route without sending')
    .addHelpText(
      'after',
      [
        '',
        'With --subject, the body is --text, --html, or standard input: echo Hello | postroad send --from A --to B --subject S',
        'Without --subject, standard input is a whole message: postroad send <message.eml',
        '  --from and --to then set its envelope (default: its From, and its To, Cc and Bcc).',
      ].join('\n'),
    )
    .action(async (options: SendOptions) => {
      await withAppliance(context, options, async appliance => {
        const workspace = await chooseWorkspace(appliance, options)
        if (options.subject === undefined) await sendGiven(appliance, workspace, context, options)
        else {
          const mail = await mailOf(appliance, context, options)
          if (options.dryRun) await dryRun(appliance, workspace, context, mail)
          else await send(appliance, workspace, context, mail)
        }
      })
    })
}

async function chooseWorkspace({ database }: Appliance, { workspace: id }: SendOptions): Promise<Workspace> {
  if (id !== undefined) return getWorkspace(database.reader, id)
  const [oldest] = await listWorkspaces(database.reader)
  if (!oldest) throw new AppError('not_found', 'there is no workspace yet; create one with: postroad init')
  return oldest
}

type Mail = SendOptions & { readonly from: string; readonly to: string; readonly subject: string }

/** The options, with the text from standard input. */
async function mailOf(
  { config }: Appliance,
  { input }: CliContext,
  { from, to, subject, ...options }: SendOptions,
): Promise<Mail> {
  if (from === undefined || to === undefined || subject === undefined)
    throw new UsageError('--subject requires --from and --to')
  const mail = { ...options, from, to, subject }
  const isAsked = options.text === '-'
  if (isAsked && !input) throw new UsageError('--text - requires the text on standard input')
  if (!input || (!isAsked && (options.text !== undefined || options.html !== undefined))) return mail
  const text = (await readInput(input(), config.limits.messageSizeBytes)).toString()
  return text === '' ? mail : { ...mail, text }
}

/** Sends a whole message from standard input. */
async function sendGiven(
  appliance: Appliance,
  workspace: Workspace,
  context: CliContext,
  options: SendOptions,
): Promise<void> {
  const { text, html, dryRun: isDry, from, to } = options
  if (text !== undefined || html !== undefined || isDry)
    throw new UsageError('--text, --html and --dry-run require --from, --to and --subject')
  if (!context.input)
    throw new UsageError('pass --from, --to and --subject, or pipe a message in: postroad send <message.eml')
  const octets = await readInput(context.input(), appliance.config.limits.messageSizeBytes)
  const ids = await sendMessage(appliance, submitParts(appliance), operatorOf(workspace), {
    octets,
    from,
    to,
  })
  await showOutcome(appliance, context, options, ids)
}

function bodyOf({ text, html }: SendOptions): { text?: string; html?: string } {
  if (text === undefined && html === undefined) return { text: 'This is a test mail.\n' }
  return { ...given({ text, html }) }
}

async function send(
  appliance: Appliance,
  workspace: Workspace,
  context: CliContext,
  options: Mail,
): Promise<void> {
  const { value } = await sendEmail(
    { ...submitParts(appliance), messageLimit: appliance.config.limits.messageSizeBytes },
    operatorOf(workspace),
    { to: options.to, subject: options.subject, from_email: options.from, ...bodyOf(options) },
  )
  const id = 'results' in value ? (value.results[0]?.message_id ?? '') : value.message_id
  await showOutcome(appliance, context, options, [id])
}

function submitParts({ config, world, database, newId }: Appliance) {
  return {
    database,
    clock: world.clock,
    newId,
    emailWindows: new SlidingWindow(world.clock),
    expireMs: config.mta.retry.expireMs,
    onEnqueued: () => {}, // a running server polls the queue
    senders: new SenderCache(database, world.clock, config.mta.sharedAddress ?? ''),
  }
}

/** Prints each recipient's message with its trace; as JSON an array if there are several. */
async function showOutcome(
  appliance: Appliance,
  context: CliContext,
  options: CommonOptions,
  ids: readonly string[],
): Promise<void> {
  if (!isServing(appliance.config.dataDir)) context.complain('the server is not running; the mail is queued')
  else for (const id of ids) await waitForAttempt(appliance, id)
  const messages: Message[] = []
  for (const id of ids) messages.push(await getMessage(appliance, id))
  const views: Awaited<ReturnType<typeof messageWithTrace>>[] = []
  for (const message of messages) views.push(await messageWithTrace(appliance.database.reader, message))
  printResult(context, options, views.length === 1 ? views[0] : views, () =>
    views
      .map((view, at) =>
        messageText(view, appliance.returnPath(ids[at] ?? '', messages[at]?.recipient ?? '')),
      )
      .join('\n\n'),
  )
  if (messages.some(({ status }) => status === 'sent'))
    context.complain('not delivered yet; it stays queued and will be retried')
  if (messages.some(({ status }) => ['bounced', 'failed', 'suppressed'].includes(status))) context.fail()
}

/** Waits until the message has a final status or its first attempt has ended. */
async function waitForAttempt(appliance: Appliance, id: string): Promise<void> {
  const { clock } = appliance.world
  const until = clock.monotonic() + WAIT_MS
  while (clock.monotonic() < until) {
    const message = await getMessage(appliance, id)
    if (message.status !== 'sent') return
    const { trace } = await messageWithTrace(appliance.database.reader, message)
    if (trace.length > 0) return
    await clock.sleep(POLL_MS)
  }
}

async function getMessage({ database }: Appliance, id: string): Promise<Message> {
  const message = await findAnyMessage(database.reader, id)
  if (!message) throw new AppError('not_found', `no message ${id}`)
  return message
}

async function dryRun(
  appliance: Appliance,
  workspace: Workspace,
  context: CliContext,
  options: Mail,
): Promise<void> {
  const { config, world, database, domains, newId, returnPath } = appliance
  const to = parseAddress(options.to)
  if (!to) throw new AppError('validation_error', `${options.to} is not a valid address`, { path: 'to' })
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
    [mail, 'route:', ...route.map(line => `  ${line}`)].join('\n'),
  )
}

function replyToOf({ replyTo }: Awaited<ReturnType<typeof resolveSender>>) {
  return replyTo ? { replyTo } : {}
}

function describeEndpoint({ host, address, port }: { host: string; address: string; port: number }): string {
  return `${host} [${address}]:${port}`
}

/** The operator has all permissions and no rate limit. */
function operatorOf(workspace: Workspace): Principal {
  return {
    keyId: 'operator',
    keyName: 'operator',
    actor: SHELL,
    workspaceId: workspace.id,
    liveWorkspaceId: workspace.id,
    keyType: 'full_access',
    permissions: ['*'],
    isSandbox: false,
    rateLimit: 0,
    emailRateLimit: 0,
  }
}

const PIECE_OCTETS = 65_536
/** mbox separator, which some programs put before the header. */
const MBOX_LINE = /^From [^\n]*\n/

/** @throws AppError validation_error */
async function readInput(input: AsyncIterable<Buffer | string>, limit: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let octets = 0
  for await (const piece of input) {
    pieces.push(Buffer.from(piece))
    octets += piece.length
    if (octets > limit)
      throw new AppError(
        'validation_error',
        `the input is larger than ${limit} octets; raise limits.message_size`,
      )
  }
  return Buffer.concat(pieces)
}

interface GivenMessage {
  readonly octets: Buffer
  /** Envelope; taken from the header if absent (From; To, Cc and Bcc). */
  readonly from: string | undefined
  readonly to: string | undefined
}

/** @returns ids of the first recipients' messages */
async function sendMessage(
  { newId, config, world }: Appliance,
  submit: SubmitParts & { readonly senders: SenderCache },
  principal: Principal,
  { octets, from, to }: GivenMessage,
): Promise<string[]> {
  const message = Buffer.from(
    octets.toString('latin1').replace(MBOX_LINE, '').replace(/\r?\n/g, '\r\n'),
    'latin1',
  )
  const header = readRelayedHeader(message)
  assertNoFaults(header)
  const named = to === undefined ? header.fields.filter(({ name }) => ['to', 'cc', 'bcc'].includes(name)) : []
  const recipients = to === undefined ? named.flatMap(({ raw }) => addressesIn(unfoldedValue(raw))) : [to]
  if (recipients.length === 0)
    throw new AppError('validation_error', 'no recipient: pass --to, or a message with To, Cc or Bcc', {
      path: 'to',
    })
  const session = {
    id: 'cli',
    peerAddress: '127.0.0.1',
    peerPort: 0,
    heloName: config.hostname,
    isEsmtp: false,
  }
  const parts = {
    ...submit,
    newId,
    log: world.log,
    hostname: config.hostname,
    gatherer: new SubmissionGatherer(submit),
  }
  const mail = { address: from ?? header.from[0]?.address.address ?? '', smtpUtf8: header.isEightBit }
  const transaction = new SubmissionTransaction(parts, session, { principal, isTrusted: true }, mail)
  try {
    for (const address of new Set(recipients)) transaction.addRecipient({ address })
    for (let at = 0; at < message.length; at += PIECE_OCTETS)
      await transaction.write(message.subarray(at, at + PIECE_OCTETS))
    const reply = await transaction.finish()
    return reply.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []
  } catch (error) {
    if (error instanceof SmtpRefusal) throw new AppError('validation_error', error.message)
    throw error
  }
}

function addressesIn(value: string): string[] {
  return mailboxesOf(readAddressList(value)).map(({ address }) => address)
}
