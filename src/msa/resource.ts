/** Sending as a resource: the routes of mails and batches, and the reports to who submitted mail by SMTP. */
import { deletesOldest } from '../resource/retention.js'
import { resource } from '../resource/resource.js'
import { deleteBatchesBefore } from './batch-store.js'
import { emailRoutes } from './rest/email-routes.js'
import type { SendParts } from './rest/send-email.js'
import { relayReports, type RelayReportParts } from './submission/relay-reports.js'

export interface EmailParts extends Pick<RelayReportParts, 'log' | 'hostname'> {
  readonly send: SendParts
}

export const email = resource({
  chapters: { Email: 'Send single mails and batches, now or later; what became of each.' },
  open: ({ send, log, hostname }: EmailParts) => ({
    routes: emailRoutes(send),
    consumers: [relayReports({ ...send, log, hostname })],
    retention: [deletesOldest({ what: 'batches', keep: ['messages'] }, deleteBatchesBefore)],
  }),
})
