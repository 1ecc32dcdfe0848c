/**
 * Loads the certificate that another node obtained, within about a second of its being stored.
 *
 * Called by the composition root where nodes share a database. Never throws: what could not be read is tried again.
 */
import { describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Database } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import type { TlsCertificate } from '../../world/tls/tls-certificate.js'
import type { Renewal } from './renewal.js'

export interface FollowParts extends Pick<Services, 'clock' | 'log'> {
  readonly database: Pick<Database, 'changes'>
  readonly certificate: TlsCertificate
  readonly renewal: Pick<Renewal, 'load'>
}

const LOOK_MS = 500

/** @returns stops it */
export function followStored({ clock, log, database, certificate, renewal }: FollowParts): () => void {
  let isStopped = false
  let seen: number | undefined
  const look = async () => {
    const version = database.changes.version('certificates')
    if (version === seen) return
    try {
      if (await renewal.load()) log.info('certificate reloaded', { until: isoTime(certificate.expiresAt) })
      seen = version
    } catch (error) {
      log.debug('certificate not read', { error: describeError(error) })
    }
  }
  const next = () =>
    clock.after(LOOK_MS, () => {
      void look().then(() => {
        if (!isStopped) timer = next()
      })
    })
  let timer = next()
  return () => {
    isStopped = true
    timer.cancel()
  }
}
