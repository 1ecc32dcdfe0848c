/** The appliance itself as a resource of the admin API. */
import { resource } from '../../resource/resource.js'
import { jobRoutes, type JobParts } from './job-routes.js'

export const system = resource({
  chapters: { System: 'The appliance itself: scheduled jobs.' },
  open: (parts: JobParts) => ({ routes: jobRoutes(parts) }),
})
