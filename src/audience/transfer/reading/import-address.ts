/**
 * Addresses as files hold them: bare, in angle brackets, behind a name or `mailto:`, among spaces of any kind.
 *
 * Used for rows of contacts and suppressions alike. Pure.
 */
import { normalizedAddress, parseAddress, readAddress } from '../../../mail/address.js'
import { readImportedAddress } from '../../../mail/named-address.js'

export interface ImportedAddress {
  /** Normalized (`normalizedAddress`). */
  readonly email: string
  /** The name beside it; undefined if there is none, or only the address again. */
  readonly name: string | undefined
}

/** @throws Error that says what is wrong with it */
export function readImportAddress(cell: string): ImportedAddress {
  // Nearly all are bare.
  if (parseAddress(cell)) return { email: normalizedAddress(cell), name: undefined }
  const read = readImportedAddress(cell)
  if ('fault' in read) throw new Error(`the address ${plainFault(cell, read)}`)
  const name = read.name?.includes('@') ? undefined : read.name
  return { email: normalizedAddress(read.address), name }
}

/** Nobody who wrote no angle brackets meant any. */
function plainFault(cell: string, read: { readonly fault: string; readonly isSeveral?: true }): string {
  const bare = readAddress(cell)
  return read.isSeveral || cell.includes('<') || !('fault' in bare) ? read.fault : bare.fault
}

/** The normalized address in a cell, or the cell itself if there is none: for comparison with a known address. */
export function addressIn(cell: string): string {
  const read = readImportedAddress(cell)
  return normalizedAddress('fault' in read ? cell : read.address)
}
