/** The groups of the contract that no route serves yet. A route of one of them in the appliance makes the check fail. */
import type { NotBuilt } from './row.js'

const ADDED = 'decisions: Added after the whole contract was tried from outside'

export const NOT_BUILT: readonly NotBuilt[] = [
  {
    name: 'administration',
    status: 'not built yet',
    paths: ['/api/admin/'],
    sections: [],
    places: [
      `${ADDED} > **Admin API** under /api/admin/v1 operator`,
      `${ADDED} > **Nothing has been released** Until`,
    ],
  },
]
