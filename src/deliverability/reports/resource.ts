/** DMARC and TLS reports as a resource, documented in the chapter of domains. */
import type { Database } from '../../db/database.js'
import { retentionRule } from '../../resource/retention.js'
import { resource } from '../../resource/resource.js'
import { reportRoutes } from './report-routes.js'
import { reportStatisticsRoute, type StatisticsParts } from './report-statistics-route.js'
import { deleteReportsBefore } from './report-store.js'

export interface ReportParts extends Pick<StatisticsParts, 'clock' | 'sendingAddresses'> {
  readonly database: Database
}

export const domainReports = resource({
  kept: { reports: { default: '400d', description: 'DMARC and TLS reports about domains.' } },
  open: ({ database: { reader, slowReader }, clock, sendingAddresses }: ReportParts) => ({
    routes: [
      ...reportRoutes(reader, slowReader),
      reportStatisticsRoute({ reader, slowReader, clock, sendingAddresses }),
    ],
    retention: [retentionRule({ what: 'domain reports', keep: ['reports'] }, deleteReportsBefore)],
  }),
})
