/**
 * What a suppression may name: an address, or a whole domain as `@example.com`.
 *
 * Called by the routes, the command line and the import. Pure. Fails: with AppError validation_error, path `email`.
 */
import { AppError } from '../../core/errors.js'
import { asciiDomain, normalizedAddress, parseAddress } from '../../mail/address.js'

/** An erased address is its hash, as an export has it. @returns the form that is stored and compared: that of `normalizedAddress`, by which it is also looked for. @throws AppError validation_error */
export function readSuppressionEntry(text: string): string {
  const entry = normalizedAddress(text)
  if (/^erased:[0-9a-f]{64}$/.test(entry)) return entry
  if (entry.startsWith('@') ? asciiDomain(entry.slice(1)) === undefined : !parseAddress(entry))
    throw new AppError('validation_error', `${text.slice(0, 300)} is neither an address nor @domain`, {
      path: 'email',
    })
  return entry
}
