import type { Services } from '../../db/services.js'
import { retentionRule } from '../../resource/retention.js'
import { resource } from '../../resource/resource.js'
import { countingConsumer } from './counting-consumer.js'
import { deleteRecentBefore, SPAN_NAMES, SPANS } from '../../messages/recent-counter-store.js'
import { deleteCountersBefore, deleteGroupsBefore, dayOf } from './counter-store.js'
import { deleteQuartersBefore, QUARTERS_KEPT_MS } from './quarter-store.js'
import { reportRoute } from './report-route.js'

export type StatisticsParts = Pick<Services, 'database' | 'clock'>

export const statistics = resource({
  chapters: { Analytics: 'Sending and engagement statistics.' },
  kept: {
    statistics: {
      default: '400d',
      min: '90d',
      description: 'Daily counters of analytics. A report covers at most 90 days.',
    },
  },
  open: ({ database, clock }: StatisticsParts) => ({
    routes: [reportRoute(database, clock)],
    lease: 'statistics',
    consumers: [countingConsumer()],
    retention: [
      ...SPAN_NAMES.map(span =>
        retentionRule({ what: `counters by ${span}`, keep: SPANS[span].keptMs }, (db, before, limit) =>
          deleteRecentBefore(db, span, before, limit),
        ),
      ),
      retentionRule({ what: 'daily counters', keep: ['statistics'] }, (db, before, limit) =>
        deleteCountersBefore(db, dayOf(before), limit),
      ),
      retentionRule({ what: 'daily counters by group', keep: ['statistics'] }, (db, before, limit) =>
        deleteGroupsBefore(db, dayOf(before), limit),
      ),
      retentionRule({ what: 'counters by quarter hour', keep: QUARTERS_KEPT_MS }, (db, before, limit) =>
        deleteQuartersBefore(db, before, limit),
      ),
    ],
  }),
})
