/**
 * The SMTP listeners, wired: submission with STARTTLS and with implicit TLS, inbound, their certificate, their limits.
 *
 * Part of the composition root, opened by `server.ts` after the queue, since what is accepted is handed to it. Fails: rejects
 * with an Error naming the address that cannot be listened on or the certificate that cannot be used; nothing stays open.
 */
import { keyAuthenticator, keyFinder } from './accounts/keys.js'
import type { Appliance } from './appliance.js'
import type { Config } from './config/config.js'
import type { SubmitParts } from './msa/submit-parts.js'
import { SenderCache } from './msa/sender-cache.js'
import type { LoginGuard } from './msa/submission/login-guard.js'
import { SubmissionGatherer } from './msa/submission/submission-gatherer.js'
import { openSubmissionReceiver } from './msa/submission/submission-receiver.js'
import type { MailReceiver } from './smtp/receiver.js'
import { openSmtpService, type SmtpService } from './smtp/service.js'
import type { ListenAddress } from './world/net/listen.js'
import { openTlsCertificate, type TlsCertificate } from './world/tls/tls-certificate.js'

/** Recipients refused in one inbound session before it ends: who asks for so many is guessing. */
const MOST_REFUSALS = 20

/** Where they really listen. */
export interface MailAddresses {
  readonly submission: readonly ListenAddress[]
  readonly submissionTls: readonly ListenAddress[]
  readonly inbound: readonly ListenAddress[]
}

export interface MailListeners {
  readonly addresses: MailAddresses
  /** Reads the certificate again; connections from then on see the new one. @throws Error naming the file */
  reload(): Promise<void>
  /** Takes nothing new, lets messages under way come to their end, and cuts what is left after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** @param returned takes the mail that comes back @param guard counts failed logins */
export async function openMailListeners(
  appliance: Appliance,
  submit: SubmitParts,
  returned: MailReceiver<undefined>,
  guard: LoginGuard,
): Promise<MailListeners> {
  const { config, world } = appliance
  const certificate = await openTlsCertificate({ ...config.tls, hostname: config.hostname }, world.clock)
  if (certificate.isSelfSigned && config.submission.requireTls)
    world.log.warn('no certificate is configured: SMTP clients are shown a self-signed one', {
      keys: 'tls.cert, tls.key',
    })
  const submission = openSubmission(appliance, submit, certificate, guard)
  const inbound = openInboundService(appliance, returned, certificate)
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
      reload: () => certificate.reload(),
      close,
    }
  } catch (error) {
    await close(0)
    throw error
  }
}

function openInboundService(
  { config: { hostname, inbound }, world }: Appliance,
  returned: MailReceiver<undefined>,
  certificate: TlsCertificate,
): SmtpService {
  return openSmtpService(
    {
      hostname,
      secureContext: () => certificate.secureContext(),
      limits: {
        sessions: inbound.sessions,
        sessionsPerAddress: inbound.sessionsPerAddress,
        connectionsPerMinute: inbound.connectionsPerMinute,
        messageSize: inbound.messageSizeBytes,
        recipients: inbound.maxRecipients,
        refusals: MOST_REFUSALS,
        transactions: 0,
      },
      greetingDelayMs: inbound.greetingDelayMs,
    },
    returned,
    world,
  )
}

function openSubmission(
  { config, world, database, newId, watch }: Appliance,
  submit: SubmitParts,
  certificate: TlsCertificate,
  guard: LoginGuard,
): SmtpService {
  const { submission, hostname, limits } = config
  const receiver = openSubmissionReceiver({
    ...submit,
    newId,
    log: world.log,
    hostname,
    gatherer: new SubmissionGatherer(submit),
    senders: new SenderCache(database.reader, watch, config.mta.sharedAddress ?? ''),
    authenticate: keyAuthenticator(database, watch),
    principalOfKey: keyFinder(database, watch),
    guard,
    trustedNetworks: submission.trustedNetworks,
  })
  return openSmtpService(
    {
      hostname,
      secureContext: () => certificate.secureContext(),
      auth: { isRequired: true, isAllowedInClear: !submission.requireTls },
      limits: {
        sessions: submission.sessions,
        sessionsPerAddress: submission.sessionsPerAddress,
        messageSize: limits.messageSizeBytes,
        recipients: submission.maxRecipients,
        // Programs that keep a connection seldom expect to be sent away from it.
        transactions: 0,
      },
    },
    receiver,
    world,
  )
}

/** One after the other, so that the first fault is the one that is told. */
async function listen(
  service: SmtpService,
  addresses: Config['submission']['listen'],
  isImplicitTls: boolean,
): Promise<ListenAddress[]> {
  const bound: ListenAddress[] = []
  for (const address of addresses) bound.push(await service.listen(address, isImplicitTls))
  return bound
}
