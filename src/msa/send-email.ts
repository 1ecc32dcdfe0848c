/**
 * `POST /email/send`: checks the request by the contract's rules, in the contract's order, and submits it.
 */
import type { Static } from 'typebox'
import { findWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { Principal } from '../http/principal.js'
import { readAddress } from '../mail/address.js'
import { hasHeaderBreak, stripTags } from '../mail/header-text.js'
import { readSenderFields, resolveSender, withWorkspaceSender } from './sender.js'
import type { SendBody, SendResult } from './send-schema.js'
import { submit, type SubmitParts } from './submit.js'

export interface SendParts extends SubmitParts {
  /** `mta.shared_address`; empty when there is none. */
  readonly sharedAddress: string
}

/** @throws AppError with the codes of the contract's send rules */
export async function sendEmail(
  parts: SendParts,
  principal: Principal,
  body: SendBody,
): Promise<Static<typeof SendResult>> {
  const { reader } = parts.database
  const workspace = await findWorkspace(reader, principal.workspaceId)
  if (!workspace) throw new AppError('workspace_not_found', "the key's workspace no longer exists")
  const to = readRecipients(body.to)
  const subject = readSubject(body.subject)
  const senderFields = readSenderFields(body)
  const content = readContent(body)
  const asked = withWorkspaceSender(senderFields, workspace)
  // No template exists before templates do; the answer is the right one for any id.
  if (body.template_id !== undefined)
    throw new AppError('template_not_found', 'no template has this id', { path: 'template_id' })
  const sender = await resolveSender(reader, workspace, asked, parts.sharedAddress)
  const submitted = await submit(parts, {
    principal,
    workspace,
    to,
    sender,
    subject,
    ...content,
    trackOpens: body.track_opens ?? true,
    trackClicks: body.track_clicks ?? true,
  })
  const sent = submitted.filter(one => one.skip === null).length
  return {
    sent,
    failed: 0,
    skipped: submitted.length - sent,
    total: submitted.length,
    results: submitted.map(one => ({
      to: one.asked,
      message_id: one.messageId,
      success: one.skip === null,
      ...(one.skip === null ? {} : { reason: one.skip }),
    })),
  }
}

/** An invalid address fails the request where it is the only one; in a list it is skipped. Control characters always fail. */
function readRecipients(to: string | readonly string[]): readonly string[] {
  if (typeof to !== 'string') {
    const broken = to.findIndex(hasHeaderBreak)
    if (broken >= 0)
      throw new AppError('validation_error', `to.${broken} contains control characters`, {
        path: `to.${broken}`,
      })
    return to
  }
  const address = readAddress(to)
  if ('fault' in address) throw new AppError('validation_error', `to ${address.fault}`, { path: 'to' })
  return [to]
}

function readSubject(text: string): string {
  if (hasHeaderBreak(text))
    throw new AppError('validation_error', 'subject contains line breaks or control characters', {
      path: 'subject',
    })
  return stripTags(text)
}

const BODY_BYTES = 256 * 1_024

/** Empty text is no content. */
function readContent(body: SendBody): { html?: string; text?: string } {
  const content: { html?: string; text?: string } = {}
  for (const field of ['html', 'text'] as const) {
    const value = body[field]
    if (value === undefined || value === '') continue
    if (Buffer.byteLength(value) > BODY_BYTES)
      throw new AppError('validation_error', `${field} must have at most 256 KB`, { path: field })
    content[field] = value
  }
  if (content.html === undefined && content.text === undefined && body.template_id === undefined)
    throw new AppError('no_content', 'give html, text or template_id')
  return content
}
