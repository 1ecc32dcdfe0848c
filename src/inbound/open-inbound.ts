/**
 * Puts together what receives and reads the mail that comes back.
 *
 * Called by the composition root, which hands the receiver to an SMTP service. What follows from such mail is for consumers of the
 * event log.
 */
import type { NewId } from '../core/ids.js'
import type { Database } from '../db/database.js'
import type { ReturnPathKey } from '../mail/return-path.js'
import type { MailReceiver } from '../smtp/receiver.js'
import type { Clock } from '../world/time/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import type { SpawnThread } from '../world/threads.js'
import { Forwarder } from './effects/forward.js'
import { deleteOrphanedInboundParts } from './inbound-mail-store.js'
import { IntakeLimiter, type IntakeLimits } from './intake/intake-limiter.js'
import { MailQuota } from './intake/mail-quota.js'
import { MessageTokens } from './effects/match-message.js'
import { InboundProcessor } from './processor.js'
import { readInboundAddress } from './intake/inbound-address.js'
import { openInboundReceiver } from './intake/receiver.js'
import { newCounters } from './results.js'

export interface InboundParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly newId: NewId
  readonly spawn: SpawnThread
  /** Every version of the secret `return_path`: mail that was sent before a rotation still comes back. */
  readonly keys: readonly ReturnPathKey[]
  readonly hostname: string
  /** `mta.return_path_domain`. */
  readonly returnPathDomain: string
  /** `inbound.message_size`, octets. */
  readonly messageSize: number
  /** `inbound.unsigned_message_size`, octets. */
  readonly unsignedMessageSize: number
  /** `inbound.unsigned_...` */
  readonly limits: IntakeLimits
  /** `inbound.keep_size`, octets. */
  readonly keepSize: number
  /** `inbound.forward_to`. */
  readonly forwardTo: string | undefined
  /** How long forwarded mail is tried, ms. */
  readonly expireMs: number
  /** Tells the queue that mail in this lane was committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
  /** The event log has grown: wake the dispatcher. */
  readonly onAppended: () => void
}

export interface Inbound {
  readonly receiver: MailReceiver<undefined>
  /** Whether mail to this address is for the appliance itself, be there such a mailbox or not. */
  readonly isLocal: (address: string) => boolean
  /** Started after the dispatcher, stopped after the SMTP service and before the database is closed. */
  readonly processor: InboundProcessor
  /** What retention deletes from. */
  readonly quota: MailQuota
}

/** Also removes what a crash left of mail that was never accepted. */
export async function openInbound(parts: InboundParts): Promise<Inbound> {
  const { database, clock, keys } = parts
  await database.write(tx => deleteOrphanedInboundParts(tx.db))
  const hostname = parts.hostname.toLowerCase()
  const shared = {
    ...parts,
    hostname,
    names: { hostname, returnPathDomain: parts.returnPathDomain.toLowerCase() },
    tokens: new MessageTokens(database.reader, keys),
    counters: newCounters(),
    limiter: new IntakeLimiter(parts.limits, clock),
    quota: await MailQuota.count(database.reader, parts.keepSize),
  }
  const processor = new InboundProcessor({
    ...shared,
    forwarder: new Forwarder(shared),
  })
  return {
    receiver: openInboundReceiver({ ...shared, onStored: isSigned => processor.wake(isSigned) }),
    isLocal: address => readInboundAddress(address, shared.names).kind !== 'foreign',
    processor,
    quota: shared.quota,
  }
}
