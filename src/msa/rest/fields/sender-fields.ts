/**
 * Reads from_email, from_name and reply_to: the requested sender. `sender.ts` resolves it.
 *
 * Called by the REST sends and `postroad send`. Pure. Fails: AppError validation_error with the field's path, missing_from_email.
 */
import { toUSVString } from 'node:util'
import type { Workspace } from '../../../accounts/workspace-store.js'
import { AppError } from '../../../core/errors.js'
import type { NamedAddress } from '../../../mail/address.js'
import { readNamedAddress, toNamedAddress } from '../../../mail/named-address.js'
import type { Author } from '../../sender.js'
import { invalidField, refuseControls } from './field-fault.js'

/** Limit of from_name and of the name in from_email, characters. */
const MAX_NAME = 100

export interface SenderRequest {
  readonly from_email?: string
  readonly from_name?: string
  readonly reply_to?: string
}

/** The request's sender fields, validated. */
export interface SenderFields {
  readonly fromAddress: string | undefined
  readonly name: string | undefined
  readonly replyTo: NamedAddress | undefined
}

/** @throws AppError validation_error */
export function readSenderFields(request: SenderRequest): SenderFields {
  const { from_name: fromName, reply_to: replyTo, from_email: fromEmail } = request
  if (fromName !== undefined) refuseControls(fromName, 'from_name')
  const from = fromEmail === undefined ? undefined : readAnswerable(fromEmail, 'from_email')
  if (from?.name !== undefined && from.name.length > MAX_NAME)
    throw invalidField('from_email', `from_email has a name of more than ${MAX_NAME} characters`)
  return {
    fromAddress: from?.address,
    name: fromName === undefined ? from?.name : toUSVString(fromName),
    replyTo: replyTo === undefined ? undefined : readAnswerable(replyTo, 'reply_to'),
  }
}

/** Fills in the workspace's defaults. @throws AppError missing_from_email */
export function withWorkspaceSender(fields: SenderFields, workspace: Workspace): Author {
  const { defaultFromEmail, defaultFromName } = workspace
  const fromAddress =
    fields.fromAddress ??
    (defaultFromEmail === null ? undefined : readAnswerable(defaultFromEmail, 'from_email').address)
  if (fromAddress === undefined)
    throw new AppError('missing_from_email', 'give from_email, or set a default in the workspace', {
      path: 'from_email',
    })
  return { fromAddress, name: fields.name ?? defaultFromName ?? undefined, replyTo: fields.replyTo }
}

/** The local part must be ASCII: the composed header is, and those who reply may lack SMTPUTF8. */
function readAnswerable(text: string, field: string): NamedAddress {
  const mailbox = readNamedAddress(text)
  if ('fault' in mailbox) throw invalidField(field, `${field} ${mailbox.fault}`)
  if (mailbox.needsSmtpUtf8) throw invalidField(field, `${field} must be ASCII before the @`)
  return toNamedAddress(mailbox)
}
