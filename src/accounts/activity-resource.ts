/** The log of who changed what in a workspace, as a resource. It stands in the chapter of the workspace. */
import type { Database } from '../db/database.js'
import { deleteActivitiesBefore } from '../events/activity-store.js'
import { deletesOldest } from '../resource/retention.js'
import { resource } from '../resource/resource.js'
import { activityRoute } from './activity-route.js'

export interface ActivityParts {
  readonly database: Database
}

export const activity = resource({
  kept: { activity: { default: '365d', description: 'The log of who changed what in a workspace.' } },
  open: ({ database }: ActivityParts) => ({
    routes: [activityRoute(database.slowReader)],
    retention: [deletesOldest({ what: 'activity', keep: ['activity'] }, deleteActivitiesBefore)],
  }),
})
