/**
 * The table of jobs: what the appliance does by the clock, and when.
 *
 * Made by the composition root for the scheduler. Schedules are cron expressions in UTC, a few minutes apart, so that no two
 * long ones begin together.
 */
import { deleteExpiredAnswers } from './accounts/idempotency-store.js'
import { deleteConversionsBefore } from './analytics/conversion-store.js'
import { deleteCountersBefore } from './analytics/daily-counter-store.js'
import { dayOf } from './analytics/day.js'
import { deleteProductViewsBefore } from './analytics/product-view-store.js'
import type { Appliance } from './appliance.js'
import type { RetentionConfig } from './config/config.js'
import type { Tx } from './db/database.js'
import type { RemoveSome } from './db/retention.js'
import { deleteBouncesBefore } from './deliverability/bounces/bounce-store.js'
import { deleteDenialsBefore } from './deliverability/bounces/domain-denial-store.js'
import { judgeDenials, DENIALS_KEPT_MS } from './deliverability/bounces/judge-denials.js'
import { recheckDomains } from './deliverability/domains/recheck-domains.js'
import { renewRetired } from './deliverability/dkim/renew-dkim.js'
import { deleteReportsBefore } from './deliverability/reports/report-store.js'
import { deleteActivitiesBefore } from './events/activity-store.js'
import type { Dispatcher } from './events/dispatcher.js'
import { deleteEventsBefore } from './events/store.js'
import type { KeptMail } from './inbound/intake/kept-mail.js'
import { deleteBatchesBefore } from './msa/batch-store.js'
import { contentPruning, messagePruning } from './messages/prune-messages.js'
import { oldest, prune } from './scheduler/prune.js'
import type { Job } from './scheduler/scheduler.js'
import { openExpiryTime } from './world/time/expiry-time.js'

/** What jobs work on besides what commands have as well. */
export interface JobParts {
  readonly dispatcher: Dispatcher
  readonly keptMail: KeptMail
}

export function jobsOf(appliance: Appliance, parts: JobParts): Job[] {
  return [...domainJobs(appliance), setAsideJob(parts), ...retentionJobs(appliance, parts)]
}

/** A command only marks what it wants tried again: consumers run here alone. */
function setAsideJob({ dispatcher }: JobParts): Job {
  return {
    name: 'retry-set-aside-events',
    schedule: '* * * * *',
    async run() {
      await dispatcher.retrySetAside()
    },
  }
}

function domainJobs({ domains, world: { clock, log } }: Appliance): Job[] {
  return [
    {
      name: 'recheck-domains',
      schedule: '* * * * *',
      run: stopping => recheckDomains({ ...domains, log }, stopping),
    },
    {
      name: 'judge-denials',
      schedule: '*/5 * * * *',
      run: stopping => judgeDenials({ ...domains, log }, stopping),
    },
    {
      name: 'renew-dkim',
      schedule: '23 * * * *',
      async run() {
        const selectors = await renewRetired(domains, clock.now())
        if (selectors > 0) log.info('retired DKIM keys replaced', { selectors })
      },
    },
  ]
}

/** What is to be deleted of a kind of record, and how. */
interface Retention {
  /** As the log names it. */
  readonly what: string
  readonly schedule: string
  /** Undefined: kept for ever. */
  readonly keepMs: number | undefined
  /** @param before ms since epoch UTC */
  readonly begin: (before: number) => RemoveSome | Promise<RemoveSome>
}

function retentionJobs(appliance: Appliance, parts: JobParts): Job[] {
  const { database, world } = appliance
  const expiryTime = openExpiryTime(world.clock)
  return retentions(appliance, parts).flatMap(({ what, schedule, keepMs, begin }) =>
    keepMs === undefined
      ? []
      : {
          name: `prune ${what}`,
          schedule,
          run: async stopping =>
            prune({ ...world, database }, what, await begin(expiryTime() - keepMs), stopping),
        },
  )
}

function retentions({ config, world, database }: Appliance, { dispatcher, keptMail }: JobParts): Retention[] {
  const { retention } = config
  const { reader } = database
  return [
    {
      ...{ what: 'contents of mail', schedule: '3 * * * *', keepMs: contentKeptMs(retention) },
      begin: before => contentPruning(reader, world.clock, before),
    },
    {
      // Every few hours, for it goes along those that are kept.
      ...{ what: 'messages', schedule: '13 */6 * * *', keepMs: kept(retention.messagesMs) },
      begin: before => messagePruning(reader, before),
    },
    {
      ...{ what: 'events', schedule: '18 * * * *', keepMs: kept(retention.eventsMs) },
      begin: async before => {
        const passed = await dispatcher.passed()
        return oldest((tx, limit) => deleteEventsBefore(tx.db, before, passed, limit))
      },
    },
    simple('batches', '28 * * * *', kept(retention.messagesMs), deleteBatchesBefore),
    simple('bounces', '33 * * * *', kept(retention.bouncesMs), deleteBouncesBefore),
    {
      ...{ what: 'inbound mail', schedule: '8 * * * *', keepMs: config.inbound.keepMs },
      begin: before => oldest((tx, limit) => keptMail.removeBefore(tx, before, limit)),
    },
    {
      // Within a minute it may have grown by what the intake lets in.
      ...{ what: 'inbound mail beyond its bound', schedule: '* * * * *', keepMs: 0 },
      begin: () => oldest((tx, limit) => keptMail.removeExcess(tx, limit)),
    },
    simple('denied domains', '36 * * * *', DENIALS_KEPT_MS, deleteDenialsBefore),
    simple('domain reports', '38 * * * *', kept(retention.reportsMs), deleteReportsBefore),
    simple('activity', '43 * * * *', kept(retention.activityMs), deleteActivitiesBefore),
    simple('conversions', '48 * * * *', kept(retention.conversionsMs), deleteConversionsBefore),
    simple('product views', '53 * * * *', kept(retention.productViewsMs), deleteProductViewsBefore),
    simple('daily counters', '58 * * * *', kept(retention.statisticsMs), (db, before, limit) =>
      deleteCountersBefore(db, dayOf(before), limit),
    ),
    simple('answers of repeated requests', '10 * * * *', 0, deleteExpiredAnswers),
  ]
}

function simple(
  what: string,
  schedule: string,
  keepMs: number | undefined,
  remove: (db: Tx['db'], before: number, limit: number) => Promise<number>,
): Retention {
  return {
    what,
    schedule,
    keepMs,
    begin: before => oldest((tx, limit) => remove(tx.db, before, limit)),
  }
}

/** In the configuration 0 is for ever. */
function kept(ms: number): number | undefined {
  return ms === 0 ? undefined : ms
}

/** A message goes only after its content, which is therefore not kept longer. */
function contentKeptMs({ contentMs, messagesMs }: RetentionConfig): number | undefined {
  const limits = [kept(contentMs), kept(messagesMs)].filter(ms => ms !== undefined)
  return limits.length === 0 ? undefined : Math.min(...limits)
}
