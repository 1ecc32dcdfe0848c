import { resource } from '../../resource/resource.js'
import { savedBlockRoutes } from './saved-block-routes.js'
import type { SavedBlockParts } from './saved-blocks.js'

export const savedBlocks = resource({
  chapters: { 'Saved blocks': 'Blocks kept under a name, to be inserted into templates as copies.' },
  open: (parts: SavedBlockParts) => ({ routes: savedBlockRoutes(parts) }),
})
