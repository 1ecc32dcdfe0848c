/**
 * Reads the header fields that a caller adds to a message: which there may be, and whether they can be written.
 *
 * Called by `content-fields.ts`. Pure. Fails: AppError validation_error, its path naming the field (`headers.X-Order`).
 */
import { toUSVString } from 'node:util'
import { headerFault, type HeaderField } from '../../../mail/compose/compose.js'
import { invalidField } from './field-fault.js'

/** Fields that the server or the servers on the way write; all `List-Unsubscribe`, `Content-`, `Resent-` ones are as well. */
const OWNED = new Set(
  (
    'from sender reply-to to cc bcc subject date message-id mime-version return-path received received-spf ' +
    'dkim-signature domainkey-signature authentication-results delivered-to errors-to ' +
    'disposition-notification-to feedback-id x-postroad-id'
  ).split(' '),
)
const OWNED_FAMILY = /^(?:list-unsubscribe|content-|resent-|arc-|x-postroad-)/

export function readHeaderFields(headers: Readonly<Record<string, string>>): HeaderField[] {
  const seen = new Set<string>()
  return Object.entries(headers).map(([name, text]) => {
    const path = `headers.${name}`
    const lower = name.toLowerCase()
    if (OWNED.has(lower) || OWNED_FAMILY.test(lower))
      throw invalidField(path, `the header ${name} is set by the server`)
    if (seen.has(lower)) throw invalidField(path, `the header ${name} is given twice`)
    seen.add(lower)
    const value = toUSVString(text)
    const fault = headerFault({ name, value })
    if (fault !== undefined) throw invalidField(path, fault)
    return { name, value }
  })
}
