/** Forms as a resource: routes, public pages, pending opt-ins. */
import { deletesOldest } from '../../resource/retention.js'
import { resource } from '../../resource/resource.js'
import { formReferences } from '../segments/audience-references.js'
import { formPages } from './form-pages.js'
import type { FormParts } from './form-parts.js'
import { formRoutes } from './form-routes.js'
import { deleteOptInsBefore } from './opt-in-store.js'
import { optInPages } from './opt-in-pages.js'
import { OPT_IN_MS } from './take-form.js'

export const forms = resource({
  chapters: { Forms: 'Subscription forms.' },
  references: formReferences,
  open: (parts: FormParts) => ({
    routes: formRoutes(parts),
    pages: [...formPages(parts), ...optInPages(parts)],
    retention: [deletesOldest({ what: 'opt-ins', keep: OPT_IN_MS }, deleteOptInsBefore)],
  }),
})
