/**
 * Records bounces and suppresses recipients, for immediate rejections and returned mail alike.
 *
 * A consumer of the event log. Suppresses only for causes of the recipient: a mailbox that does not exist, a complaint, an unsubscribe;
 * never for a rejection of our host, domain or content, nor for a transient one. That a whole domain does not exist is only noted here and
 * confirmed over time (`confirm-denials.ts`). Idempotent: one bounce per message, one entry per address.
 */
import type { Tx } from '../../db/database.js'
import type { EventConsumer } from '../../events/consumer.js'
import type { EmailBounced } from '../../events/event.js'
import type { StoredEvent } from '../../events/store.js'
import { addressDomain, normalizedAddress } from '../../mail/address.js'
import { bounceIdOf, insertBounces, type Bounce } from './bounce-store.js'
import { insertDenials, type DomainDenial } from './domain-denial-store.js'
import { ispName } from './isp-name.js'
import type { ContactSuppressions } from '../suppressions/suppressions.js'
import { suppressAll, type Suppression } from '../suppressions/suppression-store.js'
import type { Log } from '../../world/log.js'

export function bounceConsumer(contacts: ContactSuppressions, log?: Log): EventConsumer {
  return {
    name: 'bounces',
    startsAt: 'oldest',
    kinds: ['email.bounced', 'email.complained', 'email.unsubscribed'],
    async react(tx, events) {
      await insertBounces(
        tx.db,
        events.flatMap(event => (event.kind === 'email.bounced' ? [toBounce(event)] : [])),
      )
      await suppress(tx, events.flatMap(toSuppression), contacts, log)
      await insertDenials(tx.db, events.flatMap(toDenial))
    },
  }
}

async function suppress(
  tx: Tx,
  suppressions: readonly Suppression[],
  contacts: ContactSuppressions,
  log: Log | undefined,
): Promise<void> {
  // The unsubscribe's own transaction added its entry, which may have been removed since.
  const caused = suppressions.filter(({ reason }) => reason !== 'unsubscribe')
  await suppressAll(tx.db, caused)
  await contacts.suppressed(tx, caused, { isSandbox: false, source: 'system' })
  if (log)
    tx.onCommit(() => {
      for (const { sourceMessageId: messageId, workspaceId, email, reason, scope } of suppressions)
        log.info('address suppressed', { messageId, workspaceId, to: email, reason, scope })
    })
}

function toBounce(event: EmailBounced): Bounce {
  const { to, bounceType, subtype, cause, scope, smtpStatus, diagnosticCode, remoteMta } = event.payload
  const { contactId = null, campaignId = null } = event.payload
  return {
    id: bounceIdOf(event),
    workspaceId: event.workspaceId,
    messageId: event.messageId,
    email: normalizedAddress(to),
    contactId,
    campaignId,
    type: bounceType,
    subtype,
    cause,
    scope,
    smtpStatus,
    diagnosticCode,
    ispName: ispName(addressDomain(to), remoteMta),
    remoteMta: remoteMta ?? null,
    isSandbox: event.isSandbox,
    createdAt: event.occurredAt,
  }
}

function toSuppression(event: StoredEvent): Suppression[] {
  // Simulated outcomes can be repeated, so a sandbox suppresses only by hand.
  return event.isSandbox ? [] : suppressionsBy(event)
}

export function suppressionsBy(event: StoredEvent): Suppression[] {
  const suppression = (email: string, why: Pick<Suppression, 'reason' | 'scope'>): Suppression[] => [
    {
      workspaceId: event.workspaceId,
      email: normalizedAddress(email),
      ...why,
      sourceMessageId: event.messageId,
      createdAt: event.occurredAt,
    },
  ]
  switch (event.kind) {
    case 'email.bounced':
      return isDeadAddress(event)
        ? suppression(event.payload.to, { reason: 'hard_bounce', scope: 'all' })
        : []
    case 'email.complained':
      return suppression(event.payload.to, { reason: 'complaint', scope: 'all' })
    case 'email.unsubscribed':
      return suppression(event.payload.to, { reason: 'unsubscribe', scope: 'marketing' })
    default:
      return []
  }
}

/** A domain that accepts no mail (RFC 7505) counts for the address tried, not for others at the domain. */
export function isDeadAddress(event: Pick<EmailBounced, 'payload'>): boolean {
  const { cause, scope, bounceType } = event.payload
  if (cause !== 'recipient' || bounceType !== 'permanent' || isDenial(event)) return false
  return scope === 'address' || scope === 'domain'
}

/**
 * A single DNS lookup, ours or another server's, found no such domain or no mail host. A null MX (RFC 7505) is different: it is the owner's
 * statement.
 */
function isDenial({
  payload: { cause, scope, subtype, bounceType },
}: Pick<EmailBounced, 'payload'>): boolean {
  const isPermanent = cause === 'recipient' && bounceType === 'permanent'
  return isPermanent && scope === 'domain' && subtype !== 'domain_accepts_no_mail'
}

function toDenial(event: StoredEvent): DomainDenial[] {
  if (event.isSandbox || event.kind !== 'email.bounced' || !isDenial(event)) return []
  const email = normalizedAddress(event.payload.to)
  return [
    {
      domain: addressDomain(email),
      deniedAt: event.occurredAt,
      workspaceId: event.workspaceId,
      email,
      messageId: event.messageId,
      isOurs: event.payload.remoteMta === undefined,
    },
  ]
}
