import type { ReferenceParts } from '../../resource/references.js'
import { resource } from '../../resource/resource.js'
import { templateRoutes, type TemplateParts } from './template-routes.js'

export const templates = resource({
  chapters: { Templates: 'Reusable email content, with its versions.' },
  open: (parts: TemplateParts & ReferenceParts) => ({ routes: templateRoutes(parts) }),
})
