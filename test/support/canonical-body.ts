import { canonicalizeBody } from '../../src/mail/dkim/dkim-sign.js'

/** The whole of what DKIM hashes. */
export function canonicalBody(body: Buffer): Buffer {
  const pieces: Buffer[] = []
  canonicalizeBody(body, piece => pieces.push(Buffer.from(piece)))
  return Buffer.concat(pieces)
}
