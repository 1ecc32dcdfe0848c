import type { Database } from '../db/database.js'
import { deleteActivitiesBefore } from '../events/activity-store.js'
import { deletesOldest } from '../resource/retention.js'
import { resource } from '../resource/resource.js'
import { activityRoute } from './activity-route.js'

export interface ActivityParts {
  readonly database: Database
}

export const activity = resource({
  kept: { activity: { default: '365d', description: 'The activity log: who changed what in a workspace.' } },
  open: ({ database }: ActivityParts) => ({
    routes: [activityRoute(database.slowReader)],
    retention: [deletesOldest({ what: 'activity', keep: ['activity'] }, deleteActivitiesBefore)],
  }),
})
