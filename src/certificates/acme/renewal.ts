/**
 * Keeps an ACME certificate: loads the stored one at start, orders the first one, and renews it in time.
 *
 * Opened by the composition root, run by a job every few minutes. A certificate stays in use until its successor is on disk. Failures are
 * retried by the schedule of `renewal-plan.ts`, which survives restarts. Errors of the CA are never thrown: they are logged and stored in
 * the state, which `postroad doctor` shows.
 */
import { describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Clock } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { HttpClient } from '../../world/net/fetch.js'
import type { Random } from '../../world/random.js'
import { makeCertificateKey } from '../../world/tls/certificate-request.js'
import type { TlsCertificate } from '../../world/tls/tls-certificate.js'
import { AccountKey } from './account-key.js'
import { AcmeConnection, AcmeError } from './acme-connection.js'
import type { AcmeFiles, AcmeState } from './acme-files.js'
import type { Challenges } from './challenges.js'
import { orderCertificate } from './order-certificate.js'
import { askRenewalInfo, certificateId } from './renewal-info.js'
import { isDue, mayTryAt, stateBefore, type InUse } from './renewal-plan.js'

export interface RenewalParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly http: HttpClient
  readonly files: AcmeFiles
  readonly challenges: Challenges
  readonly certificate: TlsCertificate
  /** URL of the directory. */
  readonly directory: string
  readonly challenge: 'http' | 'dns'
  readonly contact: string | undefined
  readonly names: readonly string[]
}

export class Renewal {
  private readonly parts: RenewalParts
  /** The next run orders a certificate whether or not one is due. */
  private isWanted = false

  constructor(parts: RenewalParts) {
    this.parts = parts
  }

  /** Loads the stored certificate, if it is usable. */
  async open(): Promise<void> {
    const { files, certificate, log } = this.parts
    try {
      const kept = await files.readCertificate()
      if (kept) certificate.use(kept, files.certificateFile)
    } catch (error) {
      log.error('stored certificate rejected', { error: describeError(error) })
    }
  }

  /** After a reload: the next run need not wait, within the daily limit of attempts. */
  async hasten(): Promise<void> {
    const { files } = this.parts
    const state = await files.readState()
    if (state.nextAttemptAt > 0) await files.writeState({ ...state, nextAttemptAt: 0 })
  }

  /**
   * The next run orders a new certificate, due or not, within the daily limit of attempts.
   *
   * @returns when that may be, now or later
   */
  async want(): Promise<number> {
    const { files, clock } = this.parts
    await this.hasten()
    this.isWanted = true
    return mayTryAt(await files.readState(), clock.now())
  }

  /** Why the last attempt failed, and when the next one may be made. */
  async status(): Promise<{ readonly fault: string | null; readonly mayTryAt: number }> {
    const { files, clock } = this.parts
    const state = await files.readState()
    return { fault: state.fault, mayTryAt: mayTryAt(state, clock.now()) }
  }

  async run(stopping: AbortSignal): Promise<void> {
    const { clock, files, random } = this.parts
    const state = await this.withSuggestion(await files.readState())
    const now = clock.now()
    const isNeeded = this.isWanted || isDue(this.inUse(), suggestedFor(state, this.idInUse()), now)
    if (!isNeeded || mayTryAt(state, now) > now) return
    this.isWanted = false
    // If this cannot be stored, no attempt is made, so that the CA is not asked again and again.
    const begun = stateBefore(state, now, random.fraction())
    await files.writeState(begun)
    try {
      const account = await this.order(begun.account ?? undefined, stopping)
      await files.writeState({ ...begun, account, failures: 0, nextAttemptAt: 0, fault: null })
    } catch (error) {
      await this.noteFailure(begun, error)
    }
  }

  /** @returns URL of the account */
  private async order(account: string | undefined, stopping: AbortSignal): Promise<string> {
    const { parts } = this
    const key = await this.accountKey()
    const connection = await AcmeConnection.open({ ...parts, now: () => parts.clock.now() }, key)
    connection.account = account
    const request = { ...parts, connection, key, replaces: this.idInUse(), stopping }
    try {
      return await this.use(await orderCertificate(request))
    } catch (error) {
      const isForgotten = error instanceof AcmeError && error.type === 'accountDoesNotExist'
      if (!isForgotten || account === undefined) throw error
      connection.account = undefined
      return this.use(await orderCertificate(request))
    }
  }

  private async use(found: Awaited<ReturnType<typeof orderCertificate>>): Promise<string> {
    const { files, certificate, log, names, directory } = this.parts
    try {
      await files.writeCertificate(found)
    } catch (error) {
      // It is used anyway: otherwise the next start would order another.
      log.error('certificate not stored', { error: describeError(error) })
    }
    certificate.use(found, directory)
    log.info('certificate obtained', {
      names: names.join(', '),
      until: isoTime(certificate.expiresAt),
      directory,
    })
    return found.account
  }

  private async noteFailure(begun: AcmeState, error: unknown): Promise<void> {
    const { files, log, names, clock } = this.parts
    const fault = describeError(error)
    const asked = error instanceof AcmeError ? (error.retryAfterMs ?? 0) : 0
    const retryAfterMs = Math.min(asked, MAX_RETRY_AFTER_MS)
    const isForgotten = error instanceof AcmeError && error.type === 'accountDoesNotExist'
    const failed: AcmeState = {
      ...begun,
      account: isForgotten ? null : begun.account,
      fault,
      nextAttemptAt: Math.max(begun.nextAttemptAt, clock.now() + retryAfterMs),
    }
    await files.writeState(failed)
    log.error('certificate order failed', {
      names: names.join(', '),
      error: fault,
      nextAttemptAt: isoTime(mayTryAt(failed, clock.now())),
    })
  }

  /** Asks the CA when to renew the current certificate, as often as the CA allows. */
  private async withSuggestion(state: AcmeState): Promise<AcmeState> {
    const { parts } = this
    const { clock, files, random } = parts
    const [id, now] = [this.idInUse(), clock.now()]
    if (id === undefined || (state.suggested?.id === id && now < state.suggested.askAgainAt)) return state
    let suggested: AcmeState['suggested'] = null
    try {
      const connection = await AcmeConnection.open(
        { ...parts, now: () => clock.now() },
        new AccountKey(await this.keyText()),
      )
      const found = await askRenewalInfo(connection, id, now, random.fraction())
      if (found) suggested = { id, ...found }
    } catch {
      // The CA is unreachable; the lifetime decides.
    }
    const kept = state.suggested?.id === id ? state.suggested.at : Infinity
    const next = {
      ...state,
      suggested: suggested ?? { id, at: Math.min(kept, NEVER), askAgainAt: now + ASK_AGAIN_MS },
    }
    await files.writeState(next)
    return next
  }

  private inUse(): InUse | undefined {
    const { certificate, names } = this.parts
    if (certificate.isSelfSigned) return undefined
    const { validFrom, expiresAt } = certificate
    return { validFrom, expiresAt, coversNames: names.every(name => certificate.isFor(name)) }
  }

  private idInUse(): string | undefined {
    const { certificate } = this.parts
    return certificate.isSelfSigned ? undefined : certificateId(certificate.pair().cert)
  }

  private async accountKey(): Promise<AccountKey> {
    return new AccountKey(await this.keyText())
  }

  private async keyText(): Promise<string> {
    const { files } = this.parts
    const kept = await files.readAccountKey()
    if (kept !== undefined) return kept
    const { privateKey } = await makeCertificateKey()
    const made = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    await files.writeAccountKey(made)
    return made
  }
}

/** Limit for the CA's Retry-After; the longest rate limits are weekly. */
const MAX_RETRY_AFTER_MS = 7 * 24 * 3_600_000
const ASK_AGAIN_MS = 6 * 3_600_000
/** JSON cannot represent Infinity. */
const NEVER = Number.MAX_SAFE_INTEGER

function suggestedFor({ suggested }: AcmeState, id: string | undefined): number | undefined {
  return suggested && suggested.id === id ? suggested.at : undefined
}
