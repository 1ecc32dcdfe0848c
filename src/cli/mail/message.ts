/** `postroad message show ID`: envelope, status, and every attempt with MX, IP, TLS, reply and timing. */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { messageWithTrace } from '../../msa/log/message-view.js'
import type { MessageSchema } from '../../msa/log/message-schema.js'
import { findAnyMessage } from '../../messages/message-store.js'
import { command, printResult, withAppliance, type CliContext, type CommonOptions } from '../context.js'

type MessageView = Static<typeof MessageSchema>

export function messageCommands(program: Command, context: CliContext): void {
  const group = program.command('message').description('messages, delivered or not')
  command(group, 'show <id>', 'status and whole trace of a message').action(
    async (id: string, options: CommonOptions) => {
      await withAppliance(context, options, async ({ database, returnPath }) => {
        const message = await findAnyMessage(database.reader, id)
        if (!message) throw new AppError('not_found', `no message ${id}`)
        const view = await messageWithTrace(database.reader, message)
        const sender = returnPath(message.id, message.recipient)
        const json = { ...view, workspace_id: message.workspaceId, envelope_sender: sender }
        printResult(context, options, json, () => messageText(view, sender))
      })
    },
  )
}

export function messageText(view: MessageView, envelopeSender: string): string {
  const facts: [string, string | number | null][] = [
    ['message', view.message_id],
    ['status', view.reason === undefined ? view.status : `${view.status} (${view.reason})`],
    ['envelope', `<${envelopeSender}> to <${view.to}>`],
    ['from', view.from],
    ['subject', view.subject],
    ['accepted', view.created_at],
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

/** Nothing where nobody asked for anything. */
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
