/** The delivery queue as a resource of the admin API. */
import { resource } from '../../resource/resource.js'
import { queueChangeRoutes } from './queue-change-routes.js'
import { queueRoutes, type QueueRouteParts } from './queue-routes.js'

export const queue = resource({
  chapters: { Queue: 'Messages waiting for delivery, and the pace of the sites they go to.' },
  open: (parts: QueueRouteParts) => ({ routes: [...queueRoutes(parts), ...queueChangeRoutes(parts)] }),
})
