/**
 * Which domain vouches for a mail with reports: the one whose SPF record authorizes the client (RFC 7489 §7.2.1.1 requires reporters to
 * authenticate their mail).
 *
 * Asked only about mail in which a report was found. Never throws; without an answer from DNS the mail is not authenticated.
 */
import { evaluateSpf } from '../../deliverability/domains/spf.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { InboundMail } from '../inbound-mail-store.js'

/** @returns the domain in lower case; undefined if the mail is not authenticated */
export async function authenticateReporter(
  { peerAddress, heloName, envelopeSender }: InboundMail,
  resolver: Resolver,
): Promise<string | undefined> {
  const domain = envelopeSender.slice(envelopeSender.lastIndexOf('@') + 1) || heloName
  const sender = envelopeSender === '' ? {} : { sender: envelopeSender }
  const { verdict } = await evaluateSpf(
    { address: peerAddress, domain, hello: heloName, ...sender },
    resolver,
  )
  return verdict === 'pass' ? domain.toLowerCase() : undefined
}
