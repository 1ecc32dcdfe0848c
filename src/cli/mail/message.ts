/**
 * `postroad message show ID`: a message's envelope, status, submitter, delivery attempts and later bounce. `message list` is
 * `message-list.ts`.
 */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { bounceToApi } from '../../deliverability/bounces/bounce-routes.js'
import { findBounceOf, type Bounce } from '../../deliverability/bounces/bounce-store.js'
import { findContents } from '../../messages/content-store.js'
import type { SubmittedBy } from '../../messages/mail-log.js'
import { messageWithTrace } from '../../msa/log/message-view.js'
import type { MessageSchema } from '../../msa/log/message-schema.js'
import { command, printResult, withAppliance, type CliContext, type CommonOptions } from '../context.js'
import { messageListCommand, mustFindMeant } from './message-list.js'

type MessageView = Static<typeof MessageSchema>

export function messageCommands(program: Command, context: CliContext): void {
  const group = program.command('message').description('messages and their delivery traces')
  messageListCommand(group, context)
  command(group, 'show <id>', 'show status and delivery trace of a message, by id or Message-ID').action(
    async (id: string, options: CommonOptions) => {
      await withAppliance(context, options, async ({ database, returnPath }) => {
        const { reader } = database
        const message = await mustFindMeant(reader, id)
        const view = await messageWithTrace(reader, message)
        const sender = returnPath(message.id, message.recipient)
        const [content] = await findContents(reader, [message.contentId])
        const bounce = await findBounceOf(reader, message.id)
        const json = {
          ...view,
          workspace_id: message.workspaceId,
          envelope_sender: sender,
          key_id: content?.submittedBy?.keyId ?? null,
          peer: content?.submittedBy?.peer ?? null,
          bounce: bounce ? bounceToApi(bounce) : null,
        }
        printResult(context, options, json, () =>
          [
            messageText(view, sender, content?.submittedBy),
            ...(bounce && isLate(bounce, view) ? lateBounceLines(bounce) : []),
          ].join('\n'),
        )
      })
    },
  )
}

/** A bounce that came by mail; rejections during delivery are part of the trace. */
function isLate({ createdAt }: Bounce, { trace }: MessageView): boolean {
  const last = trace.at(-1)
  return (
    last === undefined || last.outcome === 'delivered' || Date.parse(last.finished_at) + 60_000 < createdAt
  )
}

function lateBounceLines(bounce: Bounce): string[] {
  const { createdAt, cause, scope, subtype, type, smtpStatus, remoteMta, diagnosticCode } = bounce
  return [
    '',
    `bounced     ${isoTime(createdAt)}  ${type} (${cause}/${scope}/${subtype})`,
    `  ${remoteMta ?? 'its server'}: ${smtpStatus} ${diagnosticCode}`,
  ]
}

export function messageText(view: MessageView, envelopeSender: string, submittedBy?: SubmittedBy): string {
  const facts: [string, string | number | null][] = [
    ['message', view.message_id],
    ['status', view.reason === undefined ? view.status : `${view.status} (${view.reason})`],
    ['envelope', `<${envelopeSender}> to <${view.to}>`],
    ['from', view.from],
    ['subject', view.subject],
    ['accepted', view.created_at],
    ['submitted by', submittedBy ? `key ${submittedBy.keyId} from ${submittedBy.peer}` : null],
    ['delivered', view.delivered_at],
    ['bounced', view.bounced_at],
    ['next attempt', view.next_attempt_at],
  ]
  const lines = facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.padEnd(13)} ${value ?? ''}`)
  return [...lines, ...view.trace.flatMap(attemptLines)].join('\n')
}

function attemptLines(attempt: MessageView['trace'][number]): string[] {
  const why = [attempt.cause, attempt.scope, attempt.subtype].filter(word => word !== null).join('/')
  return [
    '',
    `attempt ${attempt.attempt}  ${attempt.started_at}  ${attempt.outcome}${why === '' ? '' : ` (${why})`}`,
    `  ${attempt.summary}`,
    ...attempt.hosts.flatMap(hostLines),
  ]
}

function hostLines(host: MessageView['trace'][number]['hosts'][number]): string[] {
  const tls = host.tls
    ? `${host.tls.version} ${host.tls.cipher}, ${host.tls.verified ? 'verified' : `not verified: ${host.tls.unverified_reason ?? ''}`}`
    : 'no TLS'
  const reuse = host.reused_connection ? ', connection reused' : ''
  return [
    `  ${host.host} [${host.address ?? 'no address'}]:${host.port}  ${host.duration_ms} ms, ${tls}${reuse}`,
    ...policyLines(host),
    `    ${host.stage}: ${host.reply ?? host.error ?? 'no reply'}`,
  ]
}

/** Empty if neither a TLS policy nor MTA-STS applied. */
function policyLines({
  tls_policy: policy,
  tls_policy_source: source,
  mta_sts: sts,
}: MessageView['trace'][number]['hosts'][number]): string[] {
  const demand =
    policy === null || source === null || source === 'default'
      ? []
      : [`    TLS policy: ${policy} (${source})`]
  if (sts === null) return demand
  const findings = [sts.result, sts.reason].filter(part => part !== null).join(': ')
  return [...demand, `    MTA-STS ${sts.mode}${findings === '' ? '' : `, ${findings}`}`]
}
