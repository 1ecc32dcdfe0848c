/** The audience as resources: contacts, declared attributes, lists, segments and tags. */
import { retentionRule } from '../resource/retention.js'
import type { ReferenceParts } from '../resource/references.js'
import { resource } from '../resource/resource.js'
import { attributeRoutes } from './attributes/attribute-routes.js'
import { RESTORABLE_MS, type AudienceParts } from './audience-parts.js'
import { bulkContactRoutes } from './contacts/bulk-routes.js'
import { contactConsumer } from './contacts/contact-consumer.js'
import { contactRoutes } from './contacts/contact-routes.js'
import { deleteSweepsBefore, purgeDeleted } from './contacts/deletion-store.js'
import { sweepSuppressedDomains } from './contacts/suppressed-domains.js'
import { ContactSweeps } from './contacts/sweeps.js'
import { listRoutes } from './lists/list-routes.js'
import { memberRoutes } from './lists/member-routes.js'
import { CONTACT_TAGS, deletePairsOfDeleted, LIST_MEMBERS, type PairKind } from './pair-store.js'
import { listReferences, segmentReferences } from './segments/audience-references.js'
import { segmentRoutes } from './segments/segment-routes.js'
import { purgeSegments } from './segments/segment-store.js'
import { tagRoutes } from './tags/tag-routes.js'
import { taggedRoutes } from './tags/tagged-routes.js'
import { exportRoute } from './transfer/export-contacts.js'
import { importRoutes } from './transfer/import-routes.js'
import { deleteImportsBefore } from './transfer/import-store.js'
import {
  suppressionTransferRoutes,
  type SuppressionTransferParts,
} from './transfer/suppression-transfer-routes.js'
import type { ImporterParts } from './transfer/active-import.js'
import { ImportJob } from './transfer/importer.js'

/** Includes rejected rows. */
const IMPORTS_KEPT_MS = 30 * 86_400_000

export const contacts = resource({
  chapters: { Contacts: 'Contacts and their attributes.' },
  open: (parts: ImporterParts & SuppressionTransferParts) => {
    const sweeps = new ContactSweeps(parts)
    const imports = new ImportJob(parts)
    return {
      routes: [
        ...bulkContactRoutes(parts, sweeps),
        ...importRoutes(parts, imports),
        exportRoute(parts),
        ...contactRoutes(parts),
        ...suppressionTransferRoutes(parts),
      ],
      lease: 'contacts',
      consumers: [contactConsumer(parts)],
      jobs: [
        {
          // Resumes operations interrupted by a process exit.
          name: 'finish-contact-sweeps',
          schedule: '* * * * *',
          isRunAtStart: true,
          run: stopping => sweeps.resume(stopping),
        },
        {
          name: 'follow-suppressed-domains',
          schedule: '* * * * *',
          isRunAtStart: true,
          run: stopping => sweepSuppressedDomains(parts, stopping),
        },
        {
          // Runs as long as the appliance; resumes interrupted imports immediately.
          name: 'import-contacts',
          schedule: '* * * * *',
          isRunAtStart: true,
          run: stopping => imports.run(stopping),
        },
      ],
      retention: [
        retentionRule({ what: 'deleted contacts', keep: RESTORABLE_MS }, purgeDeleted),
        retentionRule({ what: 'finished deletions of contacts', keep: RESTORABLE_MS }, deleteSweepsBefore),
        retentionRule({ what: 'finished imports of contacts', keep: IMPORTS_KEPT_MS }, deleteImportsBefore),
      ],
      stop: () => sweeps.stop(),
    }
  },
})

export const lists = resource({
  chapters: { Lists: 'Static and dynamic lists of contacts.' },
  references: listReferences,
  open: (parts: AudienceParts & ReferenceParts) => ({
    routes: [...listRoutes(parts), ...memberRoutes(parts)],
    retention: [deletesMemberships(LIST_MEMBERS)],
  }),
})

export const segments = resource({
  chapters: { Segments: 'Saved conditions that select contacts.' },
  references: segmentReferences,
  open: (parts: AudienceParts & ReferenceParts) => ({
    routes: segmentRoutes(parts),
    retention: [retentionRule({ what: 'deleted segments', keep: RESTORABLE_MS }, purgeSegments)],
  }),
})

export const tags = resource({
  chapters: { Tags: 'Labels on contacts.' },
  open: (parts: AudienceParts & ReferenceParts) => ({
    routes: [...tagRoutes(parts), ...taggedRoutes(parts)],
    retention: [deletesMemberships(CONTACT_TAGS)],
  }),
})

export const attributes = resource({
  chapters: { Attributes: 'Names and types of what contacts have beside their own fields.' },
  open: (parts: AudienceParts) => ({ routes: attributeRoutes(parts) }),
})

/** Deletes lists and tags that can no longer be restored, with their memberships, in steps. */
function deletesMemberships(kind: PairKind) {
  return retentionRule({ what: `deleted ${kind.things}`, keep: RESTORABLE_MS }, (db, before, limit) =>
    deletePairsOfDeleted(db, kind, before, limit),
  )
}
