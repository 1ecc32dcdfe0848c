/** Forms as a resource: routes, public pages, pending opt-ins. */
import { retentionRule } from '../../resource/retention.js'
import { resource } from '../../resource/resource.js'
import { formReferences } from '../segments/audience-references.js'
import { formPages, optInPages } from './public-pages.js'
import type { FormParts } from './form.js'
import { formRoutes } from './form-routes.js'
import { deleteOptInsBefore } from './form-store.js'
import { OPT_IN_MS } from './submit-form.js'

export const forms = resource({
  chapters: { Forms: 'Subscription forms.' },
  references: formReferences,
  open: (parts: FormParts) => ({
    routes: formRoutes(parts),
    pages: [...formPages(parts), ...optInPages(parts)],
    retention: [retentionRule({ what: 'opt-ins', keep: OPT_IN_MS }, deleteOptInsBefore)],
  }),
})
