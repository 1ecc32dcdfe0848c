/** Sending as a resource: routes of emails and batches, and delivery notifications to SMTP submitters. */
import { retentionRule } from '../resource/retention.js'
import { resource } from '../resource/resource.js'
import { deleteBatchesBefore } from './batch-store.js'
import { messageAdminRoutes, type MessageAdminParts } from './log/message-admin-routes.js'
import { emailRoutes } from './rest/email-routes.js'
import { previewRoute, type PreviewParts } from './rest/preview-route.js'
import type { SendParts } from './rest/send-email.js'
import { deliveryNotifications, type NotificationParts } from './submission/delivery-notifications.js'
import { submitMessageRoute, type SubmitRouteParts } from './submission/submit-route.js'

export interface EmailParts
  extends Pick<NotificationParts, 'log' | 'hostname'>, MessageAdminParts, PreviewParts, SubmitRouteParts {
  readonly send: SendParts
}

export const email = resource({
  chapters: {
    Email: 'Send single emails and batches, now or scheduled, and track their delivery.',
    Messages: 'Messages of all workspaces, their delivery traces and sources.',
  },
  open: (parts: EmailParts) => ({
    routes: [
      ...emailRoutes({ ...parts.send, findSiteWaits: parts.findSiteWaits }),
      submitMessageRoute(parts),
      previewRoute(parts),
      ...messageAdminRoutes(parts),
    ],
    lease: 'inbound',
    consumers: [deliveryNotifications({ ...parts.send, log: parts.log, hostname: parts.hostname })],
    retention: [retentionRule({ what: 'batches', keep: ['messages'] }, deleteBatchesBefore)],
  }),
})
