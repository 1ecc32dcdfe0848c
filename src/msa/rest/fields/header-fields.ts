/**
 * Validates the custom header fields of a message.
 *
 * Called by `content-fields.ts`. Pure. Fails: AppError validation_error with the field's path (`headers.X-Order`).
 */
import { toUSVString } from 'node:util'
import { headerFault, type HeaderField } from '../../../mail/compose/compose.js'
import { isServerField } from '../../../mail/server-fields.js'
import { invalidField } from './field-fault.js'

export function readHeaderFields(headers: Readonly<Record<string, string>>): HeaderField[] {
  const seen = new Set<string>()
  return Object.entries(headers).map(([name, text]) => {
    const path = `headers.${name}`
    if (isServerField(name)) throw invalidField(path, `the header ${name} is set by the server`)
    const lower = name.toLowerCase()
    if (seen.has(lower)) throw invalidField(path, `the header ${name} is given twice`)
    seen.add(lower)
    const value = toUSVString(text)
    const fault = headerFault({ name, value })
    if (fault !== undefined) throw invalidField(path, fault)
    return { name, value }
  })
}
