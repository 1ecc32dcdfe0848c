/** DMARC and TLS reports as a resource, documented in the chapter of domains. */
import type { Database } from '../../db/database.js'
import { retentionRule } from '../../resource/retention.js'
import { resource } from '../../resource/resource.js'
import { reportRoutes } from './report-routes.js'
import { deleteReportsBefore } from './report-store.js'

export interface ReportParts {
  readonly database: Database
}

export const domainReports = resource({
  kept: { reports: { default: '400d', description: 'DMARC and TLS reports about domains.' } },
  open: ({ database }: ReportParts) => ({
    routes: reportRoutes(database.reader, database.slowReader),
    retention: [retentionRule({ what: 'domain reports', keep: ['reports'] }, deleteReportsBefore)],
  }),
})
