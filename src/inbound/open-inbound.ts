/** Assembles the receiver and the processor of inbound mail. */
import type { Database } from '../db/database.js'
import type { Services } from '../db/services.js'
import type { OpenWindow } from '../http/sliding-window.js'
import type { ReturnPathKey } from '../mail/return-path.js'
import type { MailReceiver } from '../smtp/receiver.js'
import type { Resolver } from '../world/dns/dns.js'
import type { Clock, Timer } from '../world/time/clock.js'
import { Forwarder } from './effects/forward.js'
import { leftBehindBefore } from '../cluster/left-behind.js'
import { listPublishedNames, type Purpose } from '../cluster/published-name-store.js'
import { deleteOrphanedInboundParts } from './inbound-mail-store.js'
import { IntakeLimiter, type IntakeLimits } from './intake/intake-limiter.js'
import { MailQuota } from './intake/mail-quota.js'
import { MessageTokens } from './effects/match-message.js'
import { InboundProcessor } from './processor.js'
import { readInboundAddress } from './inbound-address.js'
import { openInboundReceiver } from './intake/receiver.js'
import { newCounters } from './results.js'

export interface InboundParts extends Pick<
  Services,
  'database' | 'clock' | 'random' | 'log' | 'newId' | 'spawn' | 'hostname'
> {
  /** For the SPF records of reporters. */
  readonly resolver: Resolver
  /** Every version of the secret `return_path`: mail sent before a rotation still bounces. */
  readonly keys: readonly ReturnPathKey[]
  /** Hostnames of all nodes, in lower case. */
  readonly nodeNames?: readonly string[]
  /** `inbound.report_domain`; default: the hostname. */
  readonly reportDomain?: string
  readonly returnPathDomain: string
  /** `inbound.message_size`, bytes. */
  readonly messageSize: number
  /** `inbound.unsigned_message_size`, bytes. */
  readonly unsignedMessageSize: number
  readonly limits: IntakeLimits
  /** For limits that hold over all nodes; undefined if one process counts for itself. */
  readonly openWindow?: OpenWindow | undefined
  /** `inbound.keep_size`, bytes. */
  readonly keepSize: number
  readonly forwardTo: string | undefined
  /** Retry period of forwarded mail, ms. */
  readonly expireMs: number
  /** Called after mail was enqueued and committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
  /** Called after events were appended and committed. */
  readonly onAppended: () => void
  /** Whether this node processes inbound mail; of several nodes one does. */
  readonly isProcessing: () => boolean
}

export interface Inbound {
  readonly receiver: MailReceiver<undefined>
  /** Whether the address is in one of our domains, whether or not the mailbox exists. */
  readonly isLocal: (address: string) => boolean
  /** Start it after the event dispatcher; stop it after the SMTP service and before closing the database. */
  readonly processor: InboundProcessor
  readonly quota: MailQuota
  /** Learns no more of what other nodes store and which names they have. */
  stopFollowing(): void
}

const FOLLOW_MS = 60_000
/** Purposes of published names that can be the domain of an address. */
const MAIL_PURPOSES: ReadonlySet<Purpose> = new Set(['hostname', 'reports', 'return_path'])

/** Also deletes what a crash left of mail that was never accepted. */
export async function openInbound(parts: InboundParts): Promise<Inbound> {
  const { database, clock, keys } = parts
  const before = leftBehindBefore(database, clock)
  await database.write(tx => deleteOrphanedInboundParts(tx.db, before))
  const hostname = parts.hostname.toLowerCase()
  let published = await readPublished(database)
  const configured = {
    hostname,
    returnPathDomain: parts.returnPathDomain.toLowerCase(),
    reportDomain: (parts.reportDomain ?? hostname).toLowerCase(),
    nodeNames: parts.nodeNames ?? [],
  }
  const shared = {
    ...parts,
    hostname,
    names: {
      ...configured,
      get published() {
        return published
      },
    },
    tokens: new MessageTokens(database.reader, keys),
    counters: newCounters(),
    limiter: new IntakeLimiter(parts.limits, clock, parts.openWindow),
    quota: await MailQuota.count(database.reader, parts.keepSize),
  }
  const processor = new InboundProcessor({
    ...shared,
    forwarder: new Forwarder(shared),
  })
  return {
    receiver: openInboundReceiver({
      ...shared,
      onStored(isSigned) {
        if (parts.isProcessing()) processor.wake(isSigned)
      },
    }),
    isLocal: address => readInboundAddress(address, configured).kind !== 'foreign',
    processor,
    quota: shared.quota,
    stopFollowing: database.announce
      ? everyMinute(clock, async () => {
          await shared.quota.recount(database.reader)
          published = await readPublished(database)
        })
      : () => {},
  }
}

async function readPublished({ reader }: Database): Promise<ReadonlySet<string>> {
  const names = await listPublishedNames(reader)
  return new Set(names.filter(({ purpose }) => MAIL_PURPOSES.has(purpose)).map(({ name }) => name))
}

/** Where other nodes store and delete inbound mail as well. @returns stops it */
function everyMinute(clock: Clock, follow: () => Promise<void>): () => void {
  const wait = () => {
    timer = clock.after(FOLLOW_MS, () => {
      // A failure is retried a minute later.
      follow().catch(() => {})
      wait()
    })
  }
  let timer: Timer | undefined
  wait()
  return () => timer?.cancel()
}
