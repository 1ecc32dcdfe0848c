/**
 * Wires the SMTP listeners, submission (STARTTLS and implicit TLS) and inbound, with their limits.
 *
 * Part of the composition root, opened by `phases/listeners.ts` after the queue, which receives what they accept. Rejects with an Error naming the
 * address that cannot be bound; nothing stays open.
 */
import { keyAuthenticator, keyFinder } from '../../accounts/keys.js'
import type { Appliance } from '../appliance.js'
import type { Config } from '../../config/config.js'
import type { SubmitParts } from '../../msa/mail-submission.js'
import { SenderCache } from '../../msa/sender.js'
import type { LoginGuard } from '../../accounts/login-guard.js'
import { SubmissionGatherer } from '../../msa/submission-gatherer.js'
import { openSubmissionReceiver } from '../../msa/submission/submission-receiver.js'
import type { RelayMailParts, Submitter } from '../../msa/submission/relay-mail.js'
import { relayForTrusted } from '../../smtp/trusted-relay.js'
import type { MailReceiver } from '../../smtp/receiver.js'
import type { SmtpServiceOptions } from '../../smtp/options.js'
import { openSmtpService, type SmtpCounts, type SmtpService } from '../../smtp/service.js'
import { markIpv6Only, type ListenAddress } from '../../world/net/listen.js'
import { openProxyProtocol } from '../../world/net/proxy-protocol.js'
import type { TlsCertificate } from '../../world/tls/tls-certificate.js'

/** Rejected recipients after which an inbound session ends: the client is guessing addresses. */
const MAX_REFUSALS = 20

/** Addresses actually bound. */
export interface MailAddresses {
  readonly submission: readonly ListenAddress[]
  readonly submissionTls: readonly ListenAddress[]
  readonly inbound: readonly ListenAddress[]
}

export interface MailListeners {
  readonly addresses: MailAddresses
  readonly counts: { readonly submission: SmtpCounts; readonly inbound: SmtpCounts }
  /** Applies reloaded limits to new connections. */
  reconfigure(config: Config): void
  /** Stops accepting, lets current messages finish, and closes remaining connections after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** Receives inbound mail, such as bounces. */
export interface Returned {
  readonly receiver: MailReceiver<undefined>
  /** Whether an address is the appliance's own. */
  readonly isLocal: (address: string) => boolean
}

/**
 * @param certificate called at each handshake
 * @param returned receives inbound mail
 * @param guard counts failed logins
 * @param taken called for each accepted message, for metrics
 */
export async function openMailListeners(
  appliance: Appliance,
  certificate: TlsCertificate,
  submit: SubmitParts & Pick<RelayMailParts, 'renderQueue'>,
  returned: Returned,
  guard: LoginGuard,
  taken: (listener: 'submission' | 'inbound') => (ms: number) => void,
): Promise<MailListeners> {
  const { config, world } = appliance
  const submitted = openReceiver(appliance, submit, guard)
  const submission = openSmtpService(submissionOptions(config, certificate), submitted, {
    ...world,
    proxyProtocol: openProxyProtocol(config.submission.proxyProtocolFrom, 'submission', world),
    onAccepted: taken('submission'),
  })
  const { live } = appliance
  const inboundReceiver = relayForTrusted({
    isEnabled: () => live.current.inbound.relayTrusted,
    own: returned.receiver,
    relayed: submitted,
    isOwn: returned.isLocal,
  })
  const inbound = openSmtpService(inboundOptions(config, certificate), inboundReceiver, {
    ...world,
    proxyProtocol: openProxyProtocol(config.inbound.proxyProtocolFrom, 'inbound', world),
    onAccepted: taken('inbound'),
  })
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all([submission.close(graceMs), inbound.close(graceMs)])
  }
  try {
    return {
      addresses: {
        submission: await listen(submission, config.submission.listen, false),
        submissionTls: await listen(submission, config.submission.listenTls, true),
        inbound: await listen(inbound, config.inbound.listen, false),
      },
      get counts() {
        return { submission: submission.counts, inbound: inbound.counts }
      },
      reconfigure(next) {
        submission.reconfigure(submissionOptions(next, certificate))
        inbound.reconfigure(inboundOptions(next, certificate))
      },
      close,
    }
  } catch (error) {
    await close(0)
    throw error
  }
}

function inboundOptions(
  { hostname, inbound, limits }: Config,
  certificate: TlsCertificate,
): SmtpServiceOptions {
  return {
    hostname,
    secureContext: () => certificate.secureContext(),
    limits: {
      sessions: inbound.sessions,
      sessionsPerAddress: inbound.sessionsPerAddress,
      connectionsPerMinute: inbound.connectionsPerMinute,
      messageSize: inbound.messageSizeBytes,
      // The same limit as on port 587; the receiver further limits mail to the appliance itself.
      knownClientMessageSize: limits.messageSizeBytes,
      recipients: inbound.maxRecipients,
      refusals: MAX_REFUSALS,
      transactions: 0,
    },
    greetingDelayMs: inbound.greetingDelayMs,
  }
}

function openReceiver(
  { config, live, world, database, newId }: Appliance,
  submit: SubmitParts & Pick<RelayMailParts, 'renderQueue'>,
  guard: LoginGuard,
): MailReceiver<Submitter> {
  const { hostname } = config
  return openSubmissionReceiver({
    ...submit,
    newId,
    log: world.log,
    hostname,
    gatherer: new SubmissionGatherer(submit),
    senders: new SenderCache(database, world.clock, config.mta.sharedAddress ?? ''),
    authenticate: keyAuthenticator(database, world.clock),
    principalOfKey: keyFinder(database, world.clock),
    guard,
    get trustedNetworks() {
      return live.current.submission.trustedNetworks
    },
  })
}

function submissionOptions(
  { hostname, submission, limits }: Config,
  certificate: TlsCertificate,
): SmtpServiceOptions {
  return {
    hostname,
    secureContext: () => certificate.secureContext(),
    auth: { isRequired: true, isAllowedInClear: !submission.requireTls },
    limits: {
      sessions: submission.sessions,
      sessionsPerAddress: submission.sessionsPerAddress,
      messageSize: limits.messageSizeBytes,
      // Overlong lines are encoded, which takes no longer than for as many short ones.
      textLine: limits.messageSizeBytes,
      recipients: submission.maxRecipients,
      // Clients with persistent connections rarely handle being disconnected.
      transactions: 0,
    },
  }
}

/** Sequential, so that the first failure is the one reported. */
async function listen(
  service: SmtpService,
  addresses: Config['submission']['listen'],
  isImplicitTls: boolean,
): Promise<ListenAddress[]> {
  const bound: ListenAddress[] = []
  for (const address of markIpv6Only(addresses)) bound.push(await service.listen(address, isImplicitTls))
  return bound
}
