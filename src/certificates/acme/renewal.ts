/**
 * Keeps an ACME certificate: loads the stored one, orders the first one, and renews it in time.
 *
 * Opened by the composition root. Every node that shares the database loads what is stored (`load`); the one that runs the jobs orders
 * (`run`, every few minutes). A certificate stays in use until its successor is stored. Failures are retried by the schedule of
 * `renewal-plan.ts`, which survives restarts and moves between nodes. Errors of the CA are never thrown: they are logged and stored in the
 * state, which `postroad doctor` shows. Rejects as the database does.
 */
import { describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Services } from '../../db/services.js'
import type { HttpClient } from '../../world/net/fetch.js'
import { makeCertificateKey } from '../../world/tls/certificate-request.js'
import type { PemPair } from '../../world/tls/self-signed-certificate.js'
import type { TlsCertificate } from '../../world/tls/tls-certificate.js'
import { AccountKey } from './account-key.js'
import { AcmeConnection, AcmeError } from './acme-connection.js'
import {
  changeAcmeState,
  findCertificateVersion,
  readAccountKey,
  readAcmeState,
  readCertificate,
  writeAccountKey,
  writeCertificate,
  type AcmeState,
  type KeySeal,
} from './acme-store.js'
import type { ChallengeKind } from './challenge-store.js'
import type { Challenges } from './challenges.js'
import { orderCertificate } from './order-certificate.js'
import { askRenewalInfo, certificateId } from './renewal-info.js'
import { isDue, mayTryAt, renewAt, stateBefore, type InUse } from './renewal-plan.js'

export interface RenewalParts extends Pick<Services, 'database' | 'clock' | 'random' | 'log'> {
  readonly http: HttpClient
  readonly seal: KeySeal
  readonly challenges: Challenges
  readonly certificate: TlsCertificate
  /** URL of the directory. */
  readonly directory: string
  readonly challenge: ChallengeKind
  readonly contact: string | undefined
  /** Those that it has to cover now. */
  readonly names: () => readonly string[]
  /** Those of them that do not depend on other nodes. */
  readonly ownNames: readonly string[]
}

type Obtained = Awaited<ReturnType<typeof orderCertificate>>

export class Renewal {
  private readonly parts: RenewalParts
  /** Of the stored certificate that was loaded or rejected. */
  private seenVersion: number | undefined
  /** Obtained while the database did not answer. */
  private unstored: Obtained | undefined

  constructor(parts: RenewalParts) {
    this.parts = parts
  }

  /** Uses the stored certificate, if there is another one and it is usable. @returns whether it does */
  async load(): Promise<boolean> {
    const { database, directory, seal, certificate, log } = this.parts
    const version = await findCertificateVersion(database.reader, directory)
    if (version === undefined || version === this.seenVersion) return false
    try {
      const kept = await readCertificate(database.reader, directory, seal)
      this.seenVersion = version
      if (!kept || kept.cert === certificate.pair().cert) return false
      certificate.use(kept, 'the stored certificate')
      return true
    } catch (error) {
      if (database.isTransient(error)) throw error
      this.seenVersion = version
      log.error('stored certificate rejected', { error: describeError(error) })
      return false
    }
  }

  /** After a reload: the next run need not wait, within the daily limit of attempts. */
  async hasten(): Promise<void> {
    if ((await this.state()).nextAttemptAt > 0) await this.change({ nextAttemptAt: 0 })
  }

  /**
   * The next run orders a new certificate, due or not, within the daily limit of attempts.
   *
   * @returns when that may be, now or later
   */
  async want(): Promise<number> {
    await this.change({ nextAttemptAt: 0, isWanted: true })
    return mayTryAt(await this.state(), this.parts.clock.now())
  }

  /** Why the last attempt failed, and when the next one may be made. */
  async status(): Promise<{ readonly fault: string | null; readonly mayTryAt: number }> {
    const state = await this.state()
    return { fault: state.fault, mayTryAt: mayTryAt(state, this.parts.clock.now()) }
  }

  async run(stopping: AbortSignal): Promise<void> {
    if (this.unstored) await this.store(this.unstored, this.unstored.account)
    else await this.load()
    await this.suggest()
    const state = await this.begin()
    if (!state) return
    const names = this.namesToOrder(state)
    try {
      await this.order(names, state.account ?? undefined, stopping)
    } catch (error) {
      // The next node that runs the jobs need not wait; the attempt counts, since the CA counted it.
      if (stopping.aborted)
        await this.change({ failures: state.failures, nextAttemptAt: 0, fault: state.fault })
      else await this.noteFailure(names, error)
    }
  }

  /**
   * Counts an attempt, if one is due and may be made. If that cannot be stored, none is made, so that the CA is not asked again and again.
   *
   * @returns the state before; undefined if none is to be made
   */
  private async begin(): Promise<AcmeState | undefined> {
    const { clock, database, directory, random } = this.parts
    const now = clock.now()
    const [inUse, id, fraction] = [this.inUse(), this.idInUse(), random.fraction()]
    return database.write(async tx => {
      const state = await readAcmeState(tx.db, directory)
      const isNeeded = state.isWanted || isDue(inUse, suggestedFor(state, id), now)
      if (!isNeeded || mayTryAt(state, now) > now) return undefined
      await changeAcmeState(tx.db, directory, { ...stateBefore(state, now, fraction), isWanted: false })
      return state
    })
  }

  private async order(
    names: readonly string[],
    account: string | undefined,
    stopping: AbortSignal,
  ): Promise<void> {
    const { parts } = this
    const key = await this.accountKey()
    const connection = await AcmeConnection.open({ ...parts, now: () => parts.clock.now() }, key)
    connection.account = account
    const request = { ...parts, connection, key, names, replaces: this.idInUse(), stopping }
    try {
      await this.use(await orderCertificate(request), names)
    } catch (error) {
      const isForgotten = error instanceof AcmeError && error.type === 'accountDoesNotExist'
      if (!isForgotten || account === undefined) throw error
      connection.account = undefined
      await this.use(await orderCertificate(request), names)
    }
  }

  /** One name that cannot be validated must not keep the others without a certificate, so from the third attempt on, every other one has fewer. */
  private namesToOrder(state: AcmeState): readonly string[] {
    const { certificate, clock, names, ownNames } = this.parts
    const [all, inUse] = [names(), this.inUse()]
    if (state.failures < 2 || state.failures % 2 === 1) return all
    if (!inUse) return ownNames
    const covered = all.filter(name => certificate.isFor(name))
    const isAging = clock.now() >= renewAt(inUse, suggestedFor(state, this.idInUse()))
    return isAging && covered.length > 0 ? covered : all
  }

  private async use({ cert, key, account }: Obtained, names: readonly string[]): Promise<void> {
    const { certificate, log, directory } = this.parts
    const found = { cert, key }
    try {
      await this.store(found, account)
    } catch (error) {
      // It is used anyway: otherwise another would be ordered.
      this.unstored = { ...found, account }
      log.error('certificate not stored', { error: describeError(error) })
    }
    certificate.use(found, directory)
    log.info('certificate obtained', {
      names: names.join(', '),
      until: isoTime(certificate.expiresAt),
      directory,
    })
  }

  /** With the success of the attempt. The other nodes learn of it. */
  private async store(found: PemPair, account: string): Promise<void> {
    const { clock, database, directory, seal } = this.parts
    this.seenVersion = await database.write(async tx => {
      await changeAcmeState(tx.db, directory, { account, failures: 0, nextAttemptAt: 0, fault: null })
      tx.changed('certificates')
      return writeCertificate(tx.db, directory, found, clock.now(), seal)
    })
    this.unstored = undefined
  }

  private async noteFailure(names: readonly string[], error: unknown): Promise<void> {
    const { log, clock } = this.parts
    const fault = describeError(error)
    const asked = error instanceof AcmeError ? (error.retryAfterMs ?? 0) : 0
    const retryAfterMs = Math.min(asked, MAX_RETRY_AFTER_MS)
    const isForgotten = error instanceof AcmeError && error.type === 'accountDoesNotExist'
    const begun = await this.state()
    const nextAttemptAt = Math.max(begun.nextAttemptAt, clock.now() + retryAfterMs)
    await this.change({ fault, nextAttemptAt, ...(isForgotten ? { account: null } : {}) })
    log.error('certificate order failed', {
      names: names.join(', '),
      error: fault,
      nextAttemptAt: isoTime(mayTryAt({ ...begun, nextAttemptAt }, clock.now())),
    })
  }

  /** Asks the CA when to renew the current certificate, as often as the CA allows. */
  private async suggest(): Promise<void> {
    const { parts } = this
    const { clock, random } = parts
    const [id, now] = [this.idInUse(), clock.now()]
    if (id === undefined) return
    const state = await this.state()
    if (state.suggested?.id === id && now < state.suggested.askAgainAt) return
    let suggested: AcmeState['suggested'] = null
    try {
      const connection = await AcmeConnection.open(
        { ...parts, now: () => clock.now() },
        await this.accountKey(),
      )
      const found = await askRenewalInfo(connection, id, now, random.fraction())
      if (found) suggested = { id, ...found }
    } catch {
      // The CA is unreachable; the lifetime decides.
    }
    const kept = state.suggested?.id === id ? state.suggested.at : Infinity
    await this.change({
      suggested: suggested ?? { id, at: Math.min(kept, NEVER), askAgainAt: now + ASK_AGAIN_MS },
    })
  }

  private inUse(): InUse | undefined {
    const { certificate, names } = this.parts
    if (certificate.isSelfSigned) return undefined
    const { validFrom, expiresAt } = certificate
    return { validFrom, expiresAt, coversNames: names().every(name => certificate.isFor(name)) }
  }

  private idInUse(): string | undefined {
    const { certificate } = this.parts
    return certificate.isSelfSigned ? undefined : certificateId(certificate.pair().cert)
  }

  private async accountKey(): Promise<AccountKey> {
    const { database, directory, seal } = this.parts
    const kept = await readAccountKey(database.reader, directory, seal)
    if (kept !== undefined) return new AccountKey(kept)
    const { privateKey } = await makeCertificateKey()
    const made = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    await database.write(tx => writeAccountKey(tx.db, directory, made, seal))
    return new AccountKey(made)
  }

  private state(): Promise<AcmeState> {
    const { database, directory } = this.parts
    return readAcmeState(database.reader, directory)
  }

  private async change(change: Partial<AcmeState>): Promise<void> {
    const { database, directory } = this.parts
    await database.write(async tx => {
      await changeAcmeState(tx.db, directory, change)
      tx.changed('certificates')
    })
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
