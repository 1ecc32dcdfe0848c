/** Suppressions as a resource. They are kept until they are removed. */
import { resource } from '../../resource/resource.js'
import { suppressionRoutes, type SuppressionParts } from './suppression-routes.js'

export const suppressions = resource({
  chapters: { Suppressions: 'Addresses and domains that get no mail.' },
  open: (parts: SuppressionParts) => ({ routes: suppressionRoutes(parts) }),
})
