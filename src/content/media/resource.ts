/** The media library as a resource: routes, public files, limits. */
import { integer, size, table } from '../../config/schema/fields.js'
import { MemoryBudget } from '../../http/memory-budget.js'
import { resource } from '../../resource/resource.js'
import { retentionRule } from '../../resource/retention.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread } from '../../world/threads.js'
import { removeDeletedBefore } from './media-store.js'
import { mediaRoutes } from './media-routes.js'
import { RESTORABLE_MS, type MediaParts } from './media.js'
import { ImageThread } from './resizing/image-thread.js'
import { mediaPages } from './served-images.js'

const SECTION = table(
  {
    file_size: size({
      default: '10MB',
      min: '64KB',
      max: '50MB',
      description: 'Largest image file accepted.',
    }),
    pixels: integer({
      min: 1_000_000,
      max: 100_000_000,
      default: 25_000_000,
      description:
        'Most pixels of an image, width times height. One image at a time is decoded, which takes about 20 bytes of memory a pixel.',
    }),
    workspace_size: size({
      default: '1GB',
      min: '0B',
      max: '1000GB',
      description:
        'Most bytes of images per workspace, their smaller versions included. They are in the database and in its backups.',
    }),
  },
  { description: 'The media library: images for mail, served at `public_url`.' },
)

/** Largest files that are received at the same time, shared fairly among workspaces. */
const FILES_AT_ONCE = 12

export const media = resource({
  section: { name: 'media', schema: SECTION },
  chapters: { Media: 'Images for mail, resized and served by the server.' },
  open: (parts: MediaParts & { readonly log: Log; readonly spawn: SpawnThread }, limits) => {
    const images = new ImageThread(parts)
    const memory = new MemoryBudget({
      total: FILES_AT_ONCE * limits.fileSizeBytes,
      countedFrom: 32_768,
      refusal: 'too many images are being uploaded; try again in a few seconds',
    })
    return {
      routes: mediaRoutes({ ...parts, limits, images, memory }),
      pages: mediaPages(parts),
      retention: [retentionRule({ what: 'deleted images', keep: RESTORABLE_MS }, removeDeletedBefore)],
      stop: () => images.stop(),
    }
  },
})
