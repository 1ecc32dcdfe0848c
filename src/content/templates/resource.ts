/** Templates as a resource. They are kept with all their versions. */
import type { ReferenceParts } from '../../resource/references.js'
import { resource } from '../../resource/resource.js'
import { templateRoutes, type TemplateParts } from './template-routes.js'

export const templates = resource({
  chapters: { Templates: 'Content that is used again and again, with its versions.' },
  open: (parts: TemplateParts & ReferenceParts) => ({ routes: templateRoutes(parts) }),
})
