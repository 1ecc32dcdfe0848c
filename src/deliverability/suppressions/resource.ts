import { resource } from '../../resource/resource.js'
import { suppressionBulkRoutes } from './suppression-bulk-routes.js'
import { suppressionRoutes, type SuppressionParts } from './suppression-routes.js'

export const suppressions = resource({
  chapters: { Suppressions: 'Addresses and domains that are not mailed.' },
  open: (parts: SuppressionParts) => ({
    routes: [...suppressionBulkRoutes(parts), ...suppressionRoutes(parts)],
  }),
})
