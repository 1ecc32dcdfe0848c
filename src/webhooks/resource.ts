/**
 * Webhooks as a resource: subscriptions, deliveries and the delivery log.
 *
 * The event consumer creates deliveries; a permanent job sends them.
 */
import { resource } from '../resource/resource.js'
import { clearDeliveries, deliveryPruning, payloadPruning } from './log/prune-deliveries.js'
import { DeliveryWorker } from './delivery/delivery-worker.js'
import { describedEvents } from './events/event-schemas.js'
import { webhookConsumer } from './events/webhook-consumer.js'
import { deliveryRoutes } from './log/delivery-routes.js'
import { SubscriptionRegister } from './subscriptions/subscription-register.js'
import { subscriptionRoutes } from './subscriptions/subscription-routes.js'
import { webhookAdminRoutes } from './webhook-admin-routes.js'
import type { WebhookParts } from './webhook-parts.js'

export const webhooks = resource({
  chapters: { Webhooks: 'Events, posted to a URL as they happen.' },
  kept: {
    webhook_deliveries: {
      default: '30d',
      // Longer than the retry schedule of a delivery.
      min: '3d',
      description: 'The webhook delivery log: requests, attempts and responses.',
    },
  },
  outgoing: describedEvents(),
  open: (parts: WebhookParts) => {
    const register = new SubscriptionRegister(parts.database)
    const worker = new DeliveryWorker({ ...parts, register })
    return {
      routes: [
        ...subscriptionRoutes({ ...parts, worker }),
        ...deliveryRoutes({ ...parts, worker }),
        ...webhookAdminRoutes(parts.database),
      ],
      lease: 'webhooks',
      consumers: [webhookConsumer({ ...parts, register, onDue: ids => worker.noteDue(ids) })],
      jobs: [
        {
          name: 'deliver webhooks',
          schedule: '* * * * *',
          isRunAtStart: true,
          isHeldAfterRestore: true,
          run: stopping => worker.run(stopping),
        },
        {
          name: 'clear webhooks',
          schedule: '*/5 * * * *',
          run: stopping => clearDeliveries(parts, stopping),
        },
      ],
      retention: [
        { what: 'webhook deliveries', keep: ['webhook_deliveries'], begin: deliveryPruning },
        { what: 'webhook payloads', keep: ['webhook_deliveries'], begin: payloadPruning },
      ],
    }
  },
})
