/**
 * Finds what is attached to a mail: its MIME leaves as octets, within bounds, whatever the mail.
 *
 * Called for mail to `dmarc@` and `tlsrpt@`, whose content may be binary and larger than what the reader of returned mail
 * looks at. Pure. Standards: RFC 2045 §6, RFC 2046 §5.1. Fails: never; what cannot be taken apart is one leaf.
 */
import { leavesOf, LENIENT, readMimeStructure } from '../../mail/mime/mime-structure.js'
import { decodeTransfer } from '../../mail/mime/transfer-encoding.js'

const MAX_LEAVES = 20

/** Octets of each leaf, its transfer encoding undone; at most 20. */
export function findAttachments(source: Buffer): Buffer[] {
  return leavesOf(readMimeStructure(source, LENIENT))
    .slice(0, MAX_LEAVES)
    .map(({ bodyStart, end, encoding }) => decodeTransfer(source.subarray(bodyStart, end), encoding))
}
