/**
 * The job that reloads renewed certificate files and warns before expiry.
 *
 * Created by the composition root, run every minute. Unchanged files are not read. Never throws; an unusable file is logged once, and tried
 * again when it changes.
 */
import { describeError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import type { Services } from '../db/services.js'
import type { Job } from '../scheduler/scheduler.js'
import type { Clock } from '../world/time/clock.js'
import type { TlsCertificate } from '../world/tls/tls-certificate.js'
import { certificateStanding } from './standing.js'

export interface WatchParts extends Pick<Services, 'clock' | 'log'> {
  readonly certificate: TlsCertificate
}

const WARN_EVERY_MS = 86_400_000

export function watchCertificate({ clock, log, certificate }: WatchParts): Job {
  let warnedAt = -Infinity
  return {
    name: 'watch-certificate',
    schedule: '* * * * *',
    isRunAtStart: true,
    async run() {
      try {
        if (await certificate.reloadIfChanged())
          log.info('certificate reloaded', { until: isoTime(certificate.expiresAt) })
      } catch (error) {
        log.error('certificate reload failed', { error: describeError(error) })
      }
      const { fault, daysLeft, expiresAt } = certificateStanding(certificate, clock)
      if (fault === undefined) warnedAt = -Infinity
      else if (clock.now() - warnedAt >= WARN_EVERY_MS) {
        warnedAt = clock.now()
        log.warn('certificate check failed', { fault, daysLeft, until: isoTime(expiresAt) })
      }
    },
  }
}

const PERIOD_MS = 60_000

/**
 * Runs the watch on nodes that do not run the jobs: each node has its own files.
 *
 * @param isRunningJobs whether this node currently runs the jobs, including the watch
 * @returns stops it
 */
export function watchOnOtherNodes(clock: Clock, watch: Job, isRunningJobs: () => boolean): () => void {
  const stopping = new AbortController()
  const next = () =>
    clock.after(PERIOD_MS, () => {
      void (async () => {
        if (!isRunningJobs()) await watch.run(stopping.signal)
        if (!stopping.signal.aborted) timer = next()
      })()
    })
  let timer = next()
  return () => {
    stopping.abort()
    timer.cancel()
  }
}
